public import HatoIdentity
public import HatoModel
public import HatoStorage

/// The rows of a service that follows auth: how far it has handled the events, and which tokens are refused before they
/// expire. All begin with a prefix that the service gives them.
///
/// ```
/// 01        the position: `AccountPosition`
/// 02 uid    `UserRefusal`
/// 03 kid    a key that has leaked
/// 04        the second before which the tokens of all users are refused
/// ```
public struct RefusalRows: Sendable {
    private enum Kind: UInt8 {
        case position = 1
        case user = 2
        case key = 3
        case allUsers = 4
    }

    private struct Floor: FieldObject {
        var issuedBefore: Int64

        static let fields = Fields<Self>(blank: Self(issuedBefore: 0), .required("issuedBefore", \.issuedBefore))
    }

    private let prefix: [UInt8]

    public init(prefix: [UInt8]) { self.prefix = prefix }

    /// How far events are handled; nil before the first. Throws `RecordError`, and the errors of the store.
    public func position(in rows: some StoreReading) throws -> AccountPosition? {
        try rows.get(key(.position)).map {
            try RecordCodec.decode(AccountPosition.self, $0, of: "account position", unknown: .rejected)
        }
    }

    /// Writes the position up to which events are handled.
    public func put(_ position: AccountPosition, in rows: some StoreWriting) {
        put(RecordCodec.encode(position), at: key(.position), in: rows)
    }

    /// What is refused at `now`, in milliseconds since 1970, and the users whose last token has expired.
    ///
    /// A row that cannot be read refuses all tokens of its user for a while: `until`. A time for all users that is
    /// ahead of the clock was written while the clock was wrong. Throws the errors of the store.
    func kept(
        at now: Int64, until: Int64, in rows: some StoreReading
    ) throws -> (refusals: KeptRefusals, over: [String]) {
        var kept = KeptRefusals()
        var over: [String] = []
        try rows.scan(KeyRange(prefix: prefix), reverse: false) { key, value in
            let bytes = key.extracting(prefix.count...).withUnsafeBufferPointer { Array($0) }
            let value = value.withUnsafeBufferPointer { Array($0) }
            let name = String(decoding: bytes.dropFirst(), as: UTF8.self)
            switch bytes.first.flatMap(Kind.init) {
            case .user?:
                let user = Self.user(value, until: until)
                if user.until > now { kept.users[name] = user } else { over.append(name) }
            case .key?: kept.keys.insert(name)
            case .allUsers?:
                let floor = try? RecordCodec.decode(Floor.self, value, of: "refusal", unknown: .ignored)
                kept.issuedBefore = min(floor?.issuedBefore ?? .max, now / 1000 + 1)
            case .position?, nil: break
            }
            return .next
        }
        return (kept, over)
    }

    private static func user(_ bytes: [UInt8], until: Int64) -> UserRefusal {
        if let user = try? RecordCodec.decode(UserRefusal.self, bytes, of: "refusal", unknown: .ignored) { return user }
        var user = UserRefusal()
        (user.isWhole, user.until) = (true, until)
        return user
    }

    /// Writes what changed.
    func put(_ kept: KeptRefusals, in rows: some StoreWriting) {
        if kept.isCollapsed { rows.deleteRange(KeyRange(prefix: key(.user))) }
        for (uid, user) in kept.users {
            let key = key(.user, uid)
            if let user { put(RecordCodec.encode(user), at: key, in: rows) } else { rows.delete(key.span) }
        }
        for kid in kept.keys { put([], at: key(.key, kid), in: rows) }
        if kept.issuedBefore > 0 {
            put(RecordCodec.encode(Floor(issuedBefore: kept.issuedBefore)), at: key(.allUsers), in: rows)
        }
    }

    private func key(_ kind: Kind, _ name: String = "") -> [UInt8] { prefix + [kind.rawValue] + Array(name.utf8) }

    private func put(_ bytes: [UInt8], at key: [UInt8], in rows: some StoreWriting) { rows.put(key.span, bytes.span) }
}
