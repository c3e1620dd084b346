public import HatoModel

/// Why an ID token is refused.
public enum TokenError: Error, Sendable, Hashable {
    case malformed
    /// An algorithm other than ES256; `none` and HS256 are the classic attacks.
    case unsupportedAlgorithm
    case unknownKey(String)
    case badSignature
    case wrongIssuer
    case wrongAudience
    /// A required claim is missing or has the wrong type.
    case badClaim(String)
    case notYetValid
    case expired
    /// Issued before the sessions of its user were revoked.
    case revoked
}

extension TokenError: RPCErrorConvertible {
    public var rpcError: RPCError {
        switch self {
        case .expired: .unauthenticated(reason: "TOKEN_EXPIRED", "The ID token has expired; refresh it")
        case .revoked:
            .unauthenticated(reason: "TOKEN_EXPIRED", "The session of this ID token was ended; sign in again")
        default: .unauthenticated(reason: "INVALID_ID_TOKEN", "The credential is no valid ID token (\(explanation))")
        }
    }

    private var explanation: String {
        switch self {
        case .malformed: "it is not a signed JWT"
        case .unsupportedAlgorithm: "its algorithm is not ES256"
        case .unknownKey: "its key is unknown"
        case .badSignature: "its signature is wrong"
        case .wrongIssuer, .wrongAudience: "it is meant for another project"
        case .badClaim(let name): "its claim \(name) is missing or wrong"
        case .notYetValid: "it is not valid yet"
        case .expired, .revoked: "it is over"
        }
    }
}
