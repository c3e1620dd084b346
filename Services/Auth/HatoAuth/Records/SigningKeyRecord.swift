import HatoIdentity
import HatoModel
import HatoStorage

/// One signing key as stored. A retired one has no private key any more.
struct SigningKeyRecord: Sendable {
    enum Role: String, Sendable {
        case next
        case current
        case retired
    }

    var role: Role
    var createdAt: Int64
    /// Nil once retired.
    var key: SigningKey?
    var publicKey: VerificationKey
    var retiredAt: Int64?

    init(role: Role, key: SigningKey, createdAt: Int64) {
        self.role = role
        self.key = key
        self.createdAt = createdAt
        publicKey = key.verificationKey
    }

    mutating func retire(at time: Int64) {
        role = .retired
        retiredAt = time
        key = nil
    }
}

extension SigningKeyRecord {
    init(kid: String, _ bytes: [UInt8]) throws {
        var reader = try RecordReader("signing key", bytes)
        guard let role = Role(rawValue: try reader.text("role")) else { throw reader.failure("role") }
        self.role = role
        createdAt = try reader.time("createdAt")
        retiredAt = try reader.optionalTime("retiredAt")
        let jwk = Auth.JWK(kid: kid, x: try reader.text("x"), y: try reader.text("y"))
        guard let publicKey = VerificationKey(jwk) else { throw reader.failure("x") }
        self.publicKey = publicKey
        if let secret = try reader.optionalBytes("d", count: 32) {
            guard let key = SigningKey(kid: kid, rawRepresentation: secret), key.verificationKey.jwk == jwk else {
                throw reader.failure("d")
            }
            self.key = key
        }
        guard (key == nil) == (role == .retired), (retiredAt != nil) == (role == .retired) else {
            throw reader.failure("role")
        }
        try reader.end()
    }

    var kid: String { publicKey.kid }

    var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.put("role", role.rawValue)
        writer.put("createdAt", createdAt)
        writer.put("retiredAt", retiredAt)
        writer.put("x", publicKey.jwk.x)
        writer.put("y", publicKey.jwk.y)
        writer.put("d", key?.rawRepresentation)
        return writer.bytes
    }

    static func all(in rows: some StoreReading) throws -> [SigningKeyRecord] {
        var records: [SigningKeyRecord] = []
        try rows.rows(AuthKey.signingKeys) { key, value in
            records.append(try SigningKeyRecord(kid: String(decoding: key.dropFirst(), as: UTF8.self), value))
            return true
        }
        return records
    }
}
