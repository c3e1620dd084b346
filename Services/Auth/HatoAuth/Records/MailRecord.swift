import HatoModel
import HatoStorage

/// A mail of the queue, as stored. What it says is made when it is sent: the row has no code.
struct MailRecord: Sendable {
    static let idBytes = 16

    /// Begins with the time of its request: the order of ids is that of the mails.
    var id: [UInt8]
    /// The id of its code.
    var code: [UInt8]
    var to: String
    var type: Auth.CodeType
    /// Whether its address was that of an account, and proved: such mails are sent before others.
    var hasAccount = false
    /// Whether it is for the holder of an address with which a new account was to be made.
    var isOfTakenAddress = false
    var locale: String
    var continueUrl: String?
    var createdAt: Int64
    /// When it is of no use any more.
    var until: Int64
    var attempts = 0
    /// When it is sent next; nil: it is dead.
    var nextAt: Int64?
    var error: String?

    static func id(at time: Int64, random: [UInt8]) -> [UInt8] {
        UInt64(max(0, time)).bigEndianBytes + random.prefix(8)
    }

    /// The public id.
    var name: String { Base64.url.encode(id) }

    static func id(named name: String) -> [UInt8]? {
        guard name.utf8.count == 22, let id = Base64.url.decode(name.utf8), id.count == idBytes else { return nil }
        return id
    }

    var text: MailText { isOfTakenAddress ? .accountExists : MailText(type) }

    var entry: Auth.Mail.Entry {
        var entry = Auth.Mail.Entry(mail: name, to: to, type: type, createdAt: createdAt)
        entry.state = nextAt == nil ? .dead : .waiting
        entry.attempts = attempts
        entry.nextAt = nextAt
        entry.error = error
        return entry
    }
}

extension MailRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(
            id: [], code: [], to: "", type: .verifyEmail, locale: "", createdAt: 0, until: 0),
        .bytes("code", \.code, count: CodeRecord.idBytes),
        .required("to", \.to),
        .required("type", \.type),
        .flag("hasAccount", \.hasAccount),
        .flag("ofTakenAddress", \.isOfTakenAddress),
        .required("locale", \.locale),
        .optional("continueUrl", \.continueUrl),
        .time("createdAt", \.createdAt),
        .time("until", \.until),
        .required("attempts", \.attempts),
        .optionalTime("nextAt", \.nextAt),
        .optional("error", \.error))

    /// Throws `RecordError`.
    init(_ id: [UInt8], _ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "mail", unknown: .rejected)
        self.id = id
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

/// How many mails the queue has.
struct MailFigures: FieldObject, Hashable {
    var waiting = 0
    var dead = 0
    /// Of all of them.
    var bytes = 0

    static let fields = Fields<Self>(
        blank: Self(), .required("waiting", \.waiting), .required("dead", \.dead), .required("bytes", \.bytes))

    /// Counted anew from the mails where the row cannot be right: it stops no mail.
    static func find(in rows: some StoreReading) throws -> MailFigures {
        guard let row = try rows.row(AuthKey.mailFigures) else { return MailFigures() }
        let figures = try? RecordCodec.decode(Self.self, row, of: "mail figures", unknown: .rejected)
        guard let figures, [figures.waiting, figures.dead, figures.bytes].allSatisfy(possible.contains) else {
            return try counted(in: rows)
        }
        return figures
    }

    /// Sums of them are no overflow.
    private static let possible = 0...(1 << 40)

    private static func counted(in rows: some StoreReading) throws -> MailFigures {
        var figures = MailFigures()
        try rows.rows(AuthKey.mails) { key, value in
            if let mail = try? MailRecord(Array(key.dropFirst()), value) { figures.count(mail, 1) }
            return true
        }
        return figures
    }

    mutating func count(_ mail: MailRecord, _ sign: Int) {
        if mail.nextAt == nil { dead += sign } else { waiting += sign }
        bytes = max(0, bytes + sign * mail.bytes.count)
    }
}

/// A change of the queue in one transaction: it reads what it needs when it is made, and writes after.
struct MailQueueChange {
    private(set) var figures: MailFigures
    /// The mails that are deleted for a new one; read only where they may be needed.
    private var oldestDead: ArraySlice<MailRecord> = []
    private let limits: AuthLimits

    init(_ limits: AuthLimits, in rows: some StoreReading) throws {
        self.limits = limits
        figures = try MailFigures.find(in: rows)
        guard isFull(figures, for: Self.bytesMax) else { return }
        // Many are over the limit after it was lowered.
        let excess = figures.waiting + figures.dead - limits.mailQueueMax + 1
        let countMax = min(max(excess, Self.deletedAtOnce.lowerBound), Self.deletedAtOnce.upperBound)
        oldestDead = try MailRows.dead(after: nil, limit: countMax, in: rows)[...]
    }

    /// More than any row has.
    private static let bytesMax = 8 << 10
    /// How many dead mails at most.
    private static let deletedAtOnce = 32...1_000

    private func isFull(_ figures: MailFigures, for bytes: Int) -> Bool {
        figures.waiting + figures.dead >= limits.mailQueueMax || figures.bytes + bytes > limits.mailQueueBytesMax
    }

    /// Deletes dead mails where the queue is full. Throws `AuthError.mailQueueFull`.
    mutating func add(_ mail: MailRecord, in rows: some StoreWriting) throws(AuthError) {
        let count = try countDeleted(for: mail)
        for dead in oldestDead.prefix(count) { delete(dead, in: rows) }
        oldestDead = oldestDead.dropFirst(count)
        write(mail, in: rows)
    }

    /// Throws `AuthError.mailQueueFull` where `add` would.
    func requireRoom(for mail: MailRecord) throws(AuthError) { _ = try countDeleted(for: mail) }

    /// How many dead mails have to go. It is the same for mails that differ in their flags only: an error shows nothing
    /// of them.
    private func countDeleted(for mail: MailRecord) throws(AuthError) -> Int {
        var mail = mail
        (mail.hasAccount, mail.isOfTakenAddress) = (true, true)
        let bytes = mail.bytes.count
        var (left, count) = (figures, 0)
        for dead in oldestDead where isFull(left, for: bytes) {
            left.count(dead, -1)
            count += 1
        }
        guard !isFull(left, for: bytes) else { throw .mailQueueFull }
        return count
    }

    mutating func replace(_ before: MailRecord, with mail: MailRecord, in rows: some StoreWriting) {
        delete(before, in: rows)
        write(mail, in: rows)
    }

    mutating func delete(_ mail: MailRecord, in rows: some StoreWriting) {
        rows.deleteRow(AuthKey.mail(mail.id))
        rows.deleteRow(AuthKey.mailIndex(mail))
        figures.count(mail, -1)
    }

    func finish(in rows: some StoreWriting) { rows.putRow(AuthKey.mailFigures, RecordCodec.encode(figures)) }

    private mutating func write(_ mail: MailRecord, in rows: some StoreWriting) {
        rows.putRow(AuthKey.mail(mail.id), mail.bytes)
        rows.putRow(AuthKey.mailIndex(mail), [])
        figures.count(mail, 1)
    }
}

/// The mails of a store. Rows that cannot be read are passed over: they stop no other mail.
enum MailRows {
    static func find(_ id: [UInt8], in rows: some StoreReading) throws -> MailRecord? {
        do { return try rows.row(AuthKey.mail(id)).map { try MailRecord(id, $0) } } catch is RecordError { return nil }
    }

    /// The mail that is sent next: of those that are due one to an account first.
    static func next(in rows: some StoreReading, isDue: (MailRecord) -> Bool) throws -> MailRecord? {
        let first = try AuthKey.mailsBySendTime.compactMap { try mails($0, limit: 1, in: rows).first }
        return first.first(where: isDue) ?? first.min { ($0.nextAt ?? 0) < ($1.nextAt ?? 0) }
    }

    /// Dead mails after one, the oldest first.
    static func dead(after id: [UInt8]?, limit: Int, in rows: some StoreReading) throws -> [MailRecord] {
        try mails(AuthKey.deadMails(after: id), limit: limit, in: rows)
    }

    /// Mails after one, the oldest first.
    static func page(
        after id: [UInt8]?, _ state: Auth.Mail.State?, limit: Int, in rows: some StoreReading
    ) throws -> [MailRecord] {
        guard state != .dead else { return try dead(after: id, limit: limit, in: rows) }
        var mails: [MailRecord] = []
        try rows.rows(AuthKey.mails(after: id)) { key, value in
            guard let mail = try? MailRecord(Array(key.dropFirst()), value) else { return true }
            if state == nil || mail.nextAt != nil { mails.append(mail) }
            return mails.count < limit
        }
        return mails
    }

    private static func mails(_ range: KeyRange, limit: Int, in rows: some StoreReading) throws -> [MailRecord] {
        var (mails, rest): ([MailRecord], KeyRange) = ([], range)
        while mails.count < limit {
            var keys: [[UInt8]] = []
            try rows.rows(rest) { key, _ in
                keys.append(key)
                return keys.count < limit - mails.count
            }
            guard let last = keys.last else { break }
            mails += try keys.compactMap { try find(Array($0.suffix(MailRecord.idBytes)), in: rows) }
            rest.lower = last + [0]
        }
        return mails
    }
}
