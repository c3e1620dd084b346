import HatoModel
import HatoStorage

/// A code that is not used up, as stored: never the code itself, which is derived from it (`CodeSecrets`).
struct CodeRecord: Sendable {
    static let idBytes = 16
    /// Wrong digits after which only the long form is taken.
    static let triesMax = 5

    var id: [UInt8]
    var type: Auth.CodeType
    /// The address that gets the mail.
    var to: String
    /// The account, which has the code from its beginning; nil: of none yet.
    var uid: String?
    /// The address of the account when the code was made; nil when it had none.
    var email: String?
    /// That of the account when the code was made: each change that ends sessions makes it another.
    var validSince: Int64?
    /// The session that requested it, as its tokens name it; nil: none must go on for it.
    var session: String?
    var createdAt: Int64
    /// When the long form expires.
    var expiresAt: Int64
    /// When the digits expire; nil: it has none.
    var digitsUntil: Int64?
    /// The language of the mail to the former address; only of `changeEmail`.
    var locale: String?
    /// Wrong digits so far.
    var tries = 0

    /// For `changeEmail`.
    var newEmail: String? { type == .changeEmail ? to : nil }

    /// The row by which it is found.
    var index: [UInt8] { AuthKey.code(type, to: to, of: uid) }

    /// What a caller with the code learns.
    var found: Auth.Code.Found {
        switch type {
        // The holder of a link signs in with it only together with the address.
        case .signIn: Auth.Code.Found(type: type)
        case .recoverEmail, .signUp: Auth.Code.Found(type: type, email: to)
        default: Auth.Code.Found(type: type, email: email, newEmail: newEmail)
        }
    }

    /// Whether the account is still the one for which the code was made, with the same address, and no change since
    /// then has ended its sessions: a code that a thief requested must not outlive a new password.
    func concerns(_ account: AccountRecord) -> Bool {
        guard account.uid == uid else { return false }
        // It is for the time after such a change, whatever the address has become.
        if type == .recoverEmail { return account.createdAt <= createdAt }
        return account.email == email && account.validSince == validSince
    }
}

extension CodeRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(id: [], type: .verifyEmail, to: "", createdAt: 0, expiresAt: 0),
        .required("type", \.type),
        .required("to", \.to),
        .optional("uid", \.uid),
        .optional("email", \.email),
        .optional("validSince", \.validSince),
        .optional("session", \.session),
        .time("createdAt", \.createdAt),
        .time("expiresAt", \.expiresAt),
        .optionalTime("digitsUntil", \.digitsUntil),
        .optional("locale", \.locale),
        .required("tries", \.tries))

    /// Throws `RecordError`.
    init(_ id: [UInt8], _ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "code", unknown: .rejected)
        self.id = id
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

/// The codes of a store. It reads first and writes after. A row that cannot be read is no code.
enum CodeRows {
    static func find(_ id: [UInt8], in rows: some StoreReading) throws -> CodeRecord? {
        do { return try rows.row(AuthKey.code(id)).map { try CodeRecord(id, $0) } } catch is RecordError { return nil }
    }

    /// The newest code of a type for an address, and where `AuthKey.code` says so an account.
    static func find(
        _ type: Auth.CodeType, to address: String, of uid: String? = nil, in rows: some StoreReading
    ) throws -> CodeRecord? {
        try rows.row(AuthKey.code(type, to: address, of: uid)).flatMap { try find($0, in: rows) }
    }

    /// The codes with digits of a type for an address, whichever account they are for.
    static func withDigits(
        _ type: Auth.CodeType, to address: String, in rows: some StoreReading
    ) throws -> [CodeRecord] {
        guard CodeLifetimes.hasDigits(type) else { return [] }
        guard type == .changeEmail else { return try find(type, to: address, in: rows).map { [$0] } ?? [] }
        return try all(AuthKey.codes(type, to: address), in: rows)
    }

    /// The codes that bring former addresses of an account back, expired ones too.
    static func recoveries(of uid: String, in rows: some StoreReading) throws -> [CodeRecord] {
        try all(AuthKey.recoveries(of: uid), in: rows)
    }

    /// More than the limits of requests allow.
    private static let countMax = 1_000

    private static func all(_ range: KeyRange, in rows: some StoreReading) throws -> [CodeRecord] {
        var ids: [[UInt8]] = []
        try rows.rows(range) { _, id in
            ids.append(id)
            return ids.count < countMax
        }
        return try ids.compactMap { try find($0, in: rows) }
    }

    /// Writes a new code, or new tries of one.
    ///
    /// - Parameter earlier: the code with the same index, which ends.
    static func put(_ code: CodeRecord, replacing earlier: CodeRecord? = nil, in rows: some StoreWriting) {
        if let earlier { rows.deleteRow(AuthKey.code(earlier.id)) }
        rows.putRow(AuthKey.code(code.id), code.bytes)
        rows.putRow(code.index, code.id)
    }

    static func delete(_ code: CodeRecord, in rows: some StoreWriting) {
        rows.deleteRow(AuthKey.code(code.id))
        rows.deleteRow(code.index)
    }
}
