import HatoStorage

/// The keys of auth's records in its store. The first letter is the kind; the rest is unique within it.
///
/// | key | value |
/// |---|---|
/// | `a` uid | account |
/// | `e` e-mail | uid |
/// | `n` username | uid |
/// | `s` session id | session |
/// | `u` uid, 0, session id | nothing: the sessions of a user |
/// | `d` uid | former account: what stays of a deleted one for a day |
/// | `k` kid | signing key |
/// | `t` time in ms, 8 bytes | version: the store had it at that time |
/// | `x` name | metadata of the service |
enum AuthKey {
    static let accounts = KeyRange(prefix: [UInt8(ascii: "a")])
    static let sessions = KeyRange(prefix: [UInt8(ascii: "s")])
    static let sessionsOfUsers = KeyRange(prefix: [UInt8(ascii: "u")])
    static let formerAccounts = KeyRange(prefix: [UInt8(ascii: "d")])
    static let signingKeys = KeyRange(prefix: [UInt8(ascii: "k")])
    static let eventMarks = KeyRange(prefix: [UInt8(ascii: "t")])
    static let format = key("x", "format".utf8)
    static let settings = key("x", "settings".utf8)
    static let refreshSecret = key("x", "refresh-secret".utf8)

    static func account(_ uid: String) -> [UInt8] { key("a", uid.utf8) }
    static func formerAccount(_ uid: String) -> [UInt8] { key("d", uid.utf8) }
    static func email(_ email: String) -> [UInt8] { key("e", email.utf8) }
    static func username(_ username: String) -> [UInt8] { key("n", username.utf8) }
    static func session(_ id: [UInt8]) -> [UInt8] { key("s", id) }
    static func signingKey(_ kid: String) -> [UInt8] { key("k", kid.utf8) }

    static func eventMark(_ time: Int64) -> [UInt8] { key("t", UInt64(max(0, time)).bigEndianBytes) }

    /// A uid contains no NUL, so the sessions of two users are never mixed.
    static func sessions(of uid: String) -> KeyRange { KeyRange(prefix: key("u", uid.utf8) + [0]) }
    static func session(_ id: [UInt8], of uid: String) -> [UInt8] { key("u", uid.utf8) + [0] + id }

    /// The accounts after `uid` in the order of the store.
    static func accounts(after uid: String) -> KeyRange {
        KeyRange(lower: account(uid) + [0], upper: accounts.upper)
    }

    private static func key(_ kind: Character, _ rest: some Sequence<UInt8>) -> [UInt8] { Array(kind.utf8) + rest }
}

extension StoreReading {
    func row(_ key: [UInt8]) throws -> [UInt8]? { try get(key.span) }

    /// Visits rows in the order of their keys until `visit` returns false.
    func rows(_ range: KeyRange, _ visit: (_ key: [UInt8], _ value: [UInt8]) throws -> Bool) throws {
        try scan(range, reverse: false) { key, value in
            let isMoreWanted = try visit(Array(copying: key), Array(copying: value))
            return isMoreWanted ? .next : .stop
        }
    }
}

extension StoreWriting {
    func putRow(_ key: [UInt8], _ value: [UInt8]) { put(key.span, value.span) }
    func deleteRow(_ key: [UInt8]) { delete(key.span) }
}

extension Array where Element == UInt8 {
    init(copying span: Span<UInt8>) {
        self.init(capacity: span.count) { output in
            for index in span.indices { output.append(span[index]) }
        }
    }
}
