import HatoModel
import HatoStorage

/// A service account whose custom tokens are taken.
struct SignerRecord: Sendable {
    /// Normalised.
    var email: String
    /// In PEM, never the private half.
    var publicKey: String
    var keyBits: Int
    /// Milliseconds since 1970.
    var createdAt: Int64

    var signer: Auth.CustomToken.Signer {
        Auth.CustomToken.Signer(email: email, publicKey: publicKey, keyBits: keyBits, createdAt: createdAt)
    }
}

extension SignerRecord: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(email: "", publicKey: "", keyBits: 0, createdAt: 0),
        .required("email", \.email),
        .required("publicKey", \.publicKey),
        .required("keyBits", \.keyBits),
        .time("createdAt", \.createdAt))

    /// Throws `RecordError`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "signer", unknown: .rejected)
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

/// The service accounts of a store.
enum SignerRows {
    static func find(_ email: String, in rows: some StoreReading) throws -> SignerRecord? {
        try rows.row(AuthKey.signer(email)).map { try SignerRecord($0) }
    }

    /// At most `limit` of them after an address, in the order of the bytes of their addresses.
    static func page(after email: String?, limit: Int, in rows: some StoreReading) throws -> [SignerRecord] {
        var signers: [SignerRecord] = []
        try rows.rows(AuthKey.signers(after: email)) { _, value in
            signers.append(try SignerRecord(value))
            return signers.count < limit
        }
        return signers
    }

    /// Whether so many of them are there.
    static func has(_ countMax: Int, in rows: some StoreReading) throws -> Bool {
        guard countMax > 0 else { return true }
        var count = 0
        try rows.rows(AuthKey.signers) { _, _ in
            count += 1
            return count < countMax
        }
        return count >= countMax
    }

    static func put(_ signer: SignerRecord, in rows: AuthTransaction) {
        rows.putRow(AuthKey.signer(signer.email), signer.bytes)
    }

    static func delete(_ email: String, in rows: AuthTransaction) { rows.deleteRow(AuthKey.signer(email)) }
}
