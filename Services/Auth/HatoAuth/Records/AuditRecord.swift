import HatoModel
import HatoStorage

/// What has happened, as the store keeps it. No secret, and no e-mail address.
struct AuditRecord: Sendable, Hashable {
    var type: Auth.Audit.EntryType
    var uid: String?
    var method: String?
    var by: String?
    var reason: String?
    var provider: String?
    /// The `SessionName`.
    var session: String?
    /// The `AuditName` of the e-mail address or the username.
    var email: String?
    /// The network.
    var address: String?
    var label: String?
    /// The service account whose custom token signed in.
    var signer: String?
    var count: Int?

    init(_ type: Auth.Audit.EntryType, of uid: String? = nil) {
        self.type = type
        self.uid = uid
    }
}

extension AuditRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(.updated),
        .required("type", \.type),
        .optional("uid", \.uid),
        .optional("method", \.method),
        .optional("by", \.by),
        .optional("reason", \.reason),
        .optional("provider", \.provider),
        .optional("session", \.session),
        .optional("email", \.email),
        .optional("address", \.address),
        .optional("label", \.label),
        .optional("signer", \.signer),
        .optional("count", \.count))

    /// Throws `RecordError`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "audit entry", unknown: .rejected)
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }

    func entry(_ id: AuditID) -> Auth.Audit.Entry {
        var entry = Auth.Audit.Entry(entry: id.text, time: id.time, type: type)
        entry.uid = uid
        entry.method = method
        entry.by = by
        entry.reason = reason
        entry.provider = provider
        entry.session = session
        entry.email = email
        entry.address = address
        entry.label = label
        entry.signer = signer
        entry.count = count
        return entry
    }
}

/// The id of an entry: the time in milliseconds, the version of its commit, and its number within that commit, so that
/// the order of the bytes is that of the times.
struct AuditID: Sendable, Hashable {
    static let bytesCount = 18

    let bytes: [UInt8]

    init(time: Int64, version: UInt64, index: Int) {
        let place = [UInt8(truncatingIfNeeded: index >> 8), UInt8(truncatingIfNeeded: index)]
        bytes = UInt64(max(0, time)).bigEndianBytes + version.bigEndianBytes + place
    }

    /// Nil unless there are `bytesCount` bytes.
    init?(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.bytesCount else { return nil }
        self.bytes = bytes
    }

    /// Nil for a text that is no id.
    init?(text: String) {
        guard let bytes = Base64.url.decode(text.utf8) else { return nil }
        self.init(bytes)
    }

    var text: String { Base64.url.encode(bytes) }

    /// In milliseconds since 1970.
    var time: Int64 { Int64(clamping: bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) }
}

/// The entries of a store, each found by its id and by its account.
enum AuditRows {
    /// A commit has at most so many; one with more has no number for them.
    static let countMax = 1 << 16

    /// Returns the bytes of its rows.
    static func put(_ record: AuditRecord, _ id: AuditID, in rows: any StoreTransaction) -> Int {
        let (key, value) = (AuthKey.audit(id.bytes), record.bytes)
        rows.putRow(key, value)
        guard let uid = record.uid else { return key.count + value.count }
        let ofAccount = AuthKey.audit(id.bytes, of: uid)
        rows.putRow(ofAccount, [])
        return key.count + value.count + ofAccount.count
    }

    /// A part of the entries.
    struct Choice: Sendable {
        var uid: String?
        var type: Auth.Audit.EntryType?
        /// Milliseconds since 1970.
        var from: Int64?
        var until: Int64?
        var after: AuditID?
    }

    /// Entries, the newest first.
    struct Page {
        var entries: [Auth.Audit.Entry] = []
        /// The last entry that was looked at, where there may be more.
        var last: AuditID?
    }

    /// At most `limit` entries out of `visitsMax`.
    static func page(
        _ choice: Choice, limit: Int, visitsMax: Int, in rows: some StoreReading
    ) throws -> Page {
        var page = Page()
        var visits = 0
        let prefix = choice.uid.map { AuthKey.audits(of: $0).lower } ?? AuthKey.audits.lower
        var ids: [(id: AuditID, bytes: [UInt8])] = []
        var hasMore = false
        var lastID: AuditID?
        try rows.scan(range(choice, prefix), reverse: true) { key, value in
            guard let id = AuditID(Array(copying: key).dropFirst(prefix.count)) else { return .next }
            if visits == visitsMax || ids.count == limit {
                hasMore = true
                return .stop
            }
            visits += 1
            lastID = id
            let bytes = Array(copying: value)
            // The rows of an account name the entries only.
            if choice.uid == nil, let type = choice.type, (try? AuditRecord(bytes))?.type != type { return .next }
            ids.append((id, bytes))
            return .next
        }
        for (id, bytes) in ids {
            let bytes = choice.uid == nil ? bytes : try rows.row(AuthKey.audit(id.bytes)) ?? []
            guard !bytes.isEmpty, let record = try? AuditRecord(bytes) else { continue }
            guard choice.type == nil || record.type == choice.type else { continue }
            page.entries.append(record.entry(id))
        }
        if hasMore { page.last = lastID }
        return page
    }

    private static func range(_ choice: Choice, _ prefix: [UInt8]) -> KeyRange {
        let whole = KeyRange(prefix: prefix)
        func bound(_ time: Int64) -> [UInt8] { prefix + UInt64(max(0, time)).bigEndianBytes }
        let lower = choice.from.map(bound) ?? whole.lower
        let before = choice.until.map(bound)
        let after = choice.after.map { prefix + $0.bytes }
        let bounds = [before, after].compactMap { $0 }
        let upper = bounds.min { $0.lexicographicallyPrecedes($1) } ?? whole.upper
        // An empty range is one from its upper bound on.
        if let upper, upper.lexicographicallyPrecedes(lower) { return KeyRange(lower: upper, upper: upper) }
        return KeyRange(lower: lower, upper: upper)
    }

    /// Entries that are to be deleted.
    struct Old {
        var keys: [[UInt8]] = []
        var count = 0
        /// Of their rows.
        var bytes = 0
        /// Where the next page begins; nil: there is none.
        var next: [UInt8]?
        /// The key of the last entry that was looked at; nil: there was none.
        var last: [UInt8]?
    }

    /// Which entries are looked at, the oldest first.
    struct OldPage {
        /// The `next` of the page before; nil: the first one. It is passed on so that no page reads over what the
        /// earlier ones have deleted.
        var from: [UInt8]?
        /// Those from before this time, in milliseconds since 1970; nil: of any time.
        var before: Int64?
        /// So many are looked at.
        var countMax: Int
        /// Whether entries of what an administrator or a service has done are left out.
        var sparesAdministrators = false
    }

    /// The entries of a page, until they have `bytesMin` bytes.
    static func oldest(_ page: OldPage, bytesMin: Int = .max, in rows: some StoreReading) throws -> Old {
        let end = page.before.map { AuthKey.audits.lower + UInt64(max(0, $0)).bigEndianBytes } ?? AuthKey.audits.upper
        var (old, count) = (Old(), 0)
        try rows.rows(KeyRange(lower: page.from ?? AuthKey.audits.lower, upper: end)) { key, value in
            count += 1
            old.last = key
            if count == page.countMax { old.next = key + [0] }
            let record = try? AuditRecord(value)
            if page.sparesAdministrators, record?.by != nil { return count < page.countMax }
            old.keys.append(key)
            old.bytes += key.count + value.count
            old.count += 1
            let id = Array(key.dropFirst(AuthKey.audits.lower.count))
            if let uid = record?.uid {
                let ofAccount = AuthKey.audit(id, of: uid)
                old.keys.append(ofAccount)
                old.bytes += ofAccount.count
            }
            if old.bytes >= bytesMin { old.next = key + [0] }
            return count < page.countMax && old.bytes < bytesMin
        }
        return old
    }
}
