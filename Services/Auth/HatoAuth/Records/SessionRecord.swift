/// One sign-in and its chain of refresh tokens (a token family, RFC 9700 §4.14). Holds hashes, never tokens.
struct SessionRecord: Sendable {
    static let idBytes = 16

    var id: [UInt8]
    var uid: String
    /// The sign-in provider: `password`, `anonymous`.
    var provider: SignInProvider
    /// The time in seconds when the user presented a credential; refreshing does not change it.
    var authTime: Int64
    var rotation: RefreshRotationStateMachine
}

enum SignInProvider: String, Sendable, Hashable {
    case password
    case anonymous
}

extension SessionRecord {
    init(_ id: [UInt8], _ bytes: [UInt8]) throws {
        var reader = try RecordReader("session", bytes)
        let hashBytes = RefreshToken.hashBytes
        self.id = id
        uid = try reader.text("uid")
        guard let provider = SignInProvider(rawValue: try reader.text("provider")) else {
            throw reader.failure("provider")
        }
        self.provider = provider
        authTime = try reader.seconds("authTime")
        rotation = RefreshRotationStateMachine(
            currentHash: try reader.bytes("current", count: hashBytes), createdAt: try reader.time("createdAt"))
        rotation.previousHash = try reader.optionalBytes("previous", count: hashBytes)
        rotation.rotatedAt = try reader.time("rotatedAt")
        try reader.end()
    }

    var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.put("uid", uid)
        writer.put("provider", provider.rawValue)
        writer.put("authTime", authTime)
        writer.put("current", rotation.currentHash)
        writer.put("createdAt", rotation.createdAt)
        writer.put("previous", rotation.previousHash)
        writer.put("rotatedAt", rotation.rotatedAt)
        return writer.bytes
    }
}
