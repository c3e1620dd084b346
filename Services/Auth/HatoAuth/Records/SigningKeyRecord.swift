import HatoIdentity
import HatoModel
import HatoStorage

/// One signing key as stored. A retired or revoked one has no private key any more.
struct SigningKeyRecord: Sendable {
    enum Role: String, FieldChoice {
        case next
        case current
        case retired
        /// Ended before its time; the row stays until the tokens that it signed have expired, for those who ask.
        case revoked
    }

    var role: Role
    var createdAt: Int64
    /// Nil once retired or revoked.
    var key: SigningKey?
    var publicKey: VerificationKey
    var retiredAt: Int64?
    /// When the last of its tokens has expired, once it is retired; nil in the rows of earlier versions.
    var endsAt: Int64?
    var revokedAt: Int64?
    /// Since when it signs, or has signed; nil in the rows of earlier versions, and of a key that never did.
    var usedSince: Int64?
    /// No session cookie that it has signed is valid later; nil: it has signed none.
    var cookiesUntil: Int64?
    /// Whether its row has the private key in clear.
    private(set) var isInClear = false

    init(role: Role, key: SigningKey, createdAt: Int64) {
        self.role = role
        self.key = key
        self.createdAt = createdAt
        publicKey = key.verificationKey
    }

    mutating func retire(at time: Int64, until end: Int64) {
        role = .retired
        retiredAt = time
        endsAt = end
        key = nil
    }

    mutating func revoke(at time: Int64) {
        role = .revoked
        revokedAt = time
        key = nil
    }
}

extension SigningKeyRecord {
    /// What is in the row; the key id is its key.
    private struct Stored: FieldObject {
        var role: Role
        var createdAt: Int64
        var retiredAt: Int64?
        var endsAt: Int64?
        var revokedAt: Int64?
        var usedSince: Int64?
        var cookiesUntil: Int64?
        var x: String
        var y: String
        /// The private key.
        var d: [UInt8]?
        /// The private key, encrypted.
        var sealed: [UInt8]?

        static let fields = Fields<Self>(
            blank: Self(role: .retired, createdAt: 0, x: "", y: ""),
            .required("role", \.role),
            .time("createdAt", \.createdAt),
            .optionalTime("retiredAt", \.retiredAt),
            .optionalTime("endsAt", \.endsAt),
            .optionalTime("revokedAt", \.revokedAt),
            .optionalTime("usedSince", \.usedSince),
            .optionalTime("cookiesUntil", \.cookiesUntil),
            .required("x", \.x),
            .required("y", \.y),
            .optionalBytes("d", \.d, count: keyBytes),
            .optionalBytes("sealed", \.sealed, count: keyBytes + KeyEncryption.addedBytes))
    }

    private static let name = "signing key"
    private static let keyBytes = 32

    /// Throws `RecordError`, and the errors of `decrypt`.
    init(
        kid: String, _ bytes: [UInt8],
        decrypt: (_ sealed: [UInt8]) throws -> [UInt8] = { _ in throw KeyEncryptionError.noKey }
    ) throws {
        func damaged(_ member: String) -> RecordError { RecordError(record: Self.name, problem: "member \(member)") }
        let stored = try RecordCodec.decode(Stored.self, bytes, of: Self.name, unknown: .rejected)
        role = stored.role
        createdAt = stored.createdAt
        retiredAt = stored.retiredAt
        endsAt = stored.endsAt
        revokedAt = stored.revokedAt
        usedSince = stored.usedSince
        cookiesUntil = stored.cookiesUntil
        let jwk = Auth.JWK(kid: kid, x: stored.x, y: stored.y)
        guard let publicKey = VerificationKey(jwk) else { throw damaged("x") }
        self.publicKey = publicKey
        isInClear = stored.d != nil
        if let secret = try stored.d ?? stored.sealed.map(decrypt) {
            guard let key = SigningKey(kid: kid, rawRepresentation: secret), key.verificationKey.jwk == jwk else {
                throw damaged("d")
            }
            self.key = key
        }
        let isEnded = role == .retired || role == .revoked
        guard (key == nil) == isEnded, (revokedAt != nil) == (role == .revoked),
            role == .revoked || (retiredAt != nil) == (role == .retired)
        else { throw damaged("role") }
    }

    var kid: String { publicKey.kid }

    /// The row.
    ///
    /// - Parameter sealed: the encrypted private key; nil: the row has it in clear.
    func bytes(sealed: [UInt8]? = nil) -> [UInt8] {
        RecordCodec.encode(
            Stored(
                role: role, createdAt: createdAt, retiredAt: retiredAt, endsAt: endsAt, revokedAt: revokedAt,
                usedSince: usedSince, cookiesUntil: cookiesUntil, x: publicKey.jwk.x, y: publicKey.jwk.y,
                d: sealed == nil ? key.map { Array($0.rawRepresentation) } : nil, sealed: sealed))
    }
}
