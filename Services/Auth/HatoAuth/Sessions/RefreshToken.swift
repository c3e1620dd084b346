import Crypto
import HatoIdentity
import HatoModel

/// A refresh token: the id of its session and 256 random bits, as 64 characters of base64url. Only its hash is stored.
struct RefreshToken: Sendable, CustomStringConvertible {
    static let secretBytes = 32
    static let hashBytes = 32

    let sessionID: [UInt8]
    private let secret: [UInt8]

    init(sessionID: [UInt8], secret: [UInt8]) {
        self.sessionID = sessionID
        self.secret = secret
    }

    /// Nil when the text does not have the form of a refresh token.
    init?(_ text: String) {
        let length = SessionRecord.idBytes + Self.secretBytes
        guard text.utf8.count == length * 4 / 3, let bytes = Base64.url.decode(text.utf8), bytes.count == length else {
            return nil
        }
        self.init(sessionID: Array(bytes[..<SessionRecord.idBytes]), secret: Array(bytes[SessionRecord.idBytes...]))
    }

    var text: String { Base64.url.encode(sessionID + secret) }
    var hash: [UInt8] { Array(SHA256.hash(data: sessionID + secret)) }

    /// The token after this one: a deterministic value that only a holder of this token and of the service's key can
    /// compute.
    func successor(key: [UInt8]) -> RefreshToken {
        let code = HMAC<SHA256>.authenticationCode(for: sessionID + secret, using: SymmetricKey(data: key))
        return RefreshToken(sessionID: sessionID, secret: Array(code))
    }

    /// This token and its next successors.
    func chain(key: [UInt8]) -> [RefreshToken] {
        (0..<RefreshRotationStateMachine.stepsMax).reduce(into: [self]) { chain, _ in
            if let last = chain.last { chain.append(last.successor(key: key)) }
        }
    }

    var description: String { "(refresh token)" }
}
