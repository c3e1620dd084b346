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
    var createdAt: Int64
    /// When the long form expires.
    var expiresAt: Int64
    /// When the digits expire; nil: it has none.
    var digitsUntil: Int64?
    /// Wrong digits so far.
    var tries = 0

    /// For `changeEmail`.
    var newEmail: String? { type == .changeEmail ? to : nil }

    /// By what the newest code of its type is found: its address, or for `recoverEmail` the account.
    var indexName: String { type == .recoverEmail ? uid ?? to : to }

    /// What a caller with the code learns.
    var found: Auth.Code.Found {
        switch type {
        // The holder of a link signs in with it only together with the address.
        case .signIn: Auth.Code.Found(type: type)
        case .recoverEmail: Auth.Code.Found(type: type, email: to)
        default: Auth.Code.Found(type: type, email: email, newEmail: newEmail)
        }
    }

    /// Whether the account is still the one for which the code was made.
    func concerns(_ account: AccountRecord) -> Bool {
        guard account.uid == uid, account.createdAt <= createdAt else { return false }
        switch type {
        // Whatever the address has become since.
        case .recoverEmail: return true
        // A password that was set since then ends the codes that set one.
        case .passwordReset, .invite: return account.email == email && (account.passwordUpdatedAt ?? 0) <= createdAt
        case .verifyEmail, .signIn, .changeEmail: return account.email == email
        }
    }
}

extension CodeRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(id: [], type: .verifyEmail, to: "", createdAt: 0, expiresAt: 0),
        .required("type", \.type),
        .required("to", \.to),
        .optional("uid", \.uid),
        .optional("email", \.email),
        .time("createdAt", \.createdAt),
        .time("expiresAt", \.expiresAt),
        .optionalTime("digitsUntil", \.digitsUntil),
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

    /// The newest code of a type with an `indexName`.
    static func find(_ type: Auth.CodeType, to address: String, in rows: some StoreReading) throws -> CodeRecord? {
        try rows.row(AuthKey.code(type, to: address)).flatMap { try find($0, in: rows) }
    }

    /// Writes a new code, or new tries of one.
    ///
    /// - Parameter earlier: the code of the same type for the same address, which ends.
    static func put(_ code: CodeRecord, replacing earlier: CodeRecord? = nil, in rows: some StoreWriting) {
        if let earlier { rows.deleteRow(AuthKey.code(earlier.id)) }
        rows.putRow(AuthKey.code(code.id), code.bytes)
        rows.putRow(AuthKey.code(code.type, to: code.indexName), code.id)
    }

    static func delete(_ code: CodeRecord, in rows: some StoreWriting) {
        rows.deleteRow(AuthKey.code(code.id))
        rows.deleteRow(AuthKey.code(code.type, to: code.indexName))
    }
}
