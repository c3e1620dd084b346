import HatoModel

/// Why a request becomes no call.
public enum PushFault: Error, Sendable, Hashable {
    case method
    case noCredential
    case tooLarge
    /// The gateway holds too much.
    case busy
    /// The words say where.
    case noJSON(String)
    /// A member that is wrong: its path, and what is wrong with it.
    case wrong(String, String)
    /// A member that no message has: its name, and the path of the object.
    case unknown(String, in: String)
    /// Of FCM's old interface: an error by its name there, for each of so many tokens; nil: for a topic.
    case refused(String, tokens: Int?)
    /// A member that FCM has, and that the notifier has not.
    case unsupported(String, String)

    /// As the services say it.
    var rpcError: RPCError {
        switch self {
        case .method, .noCredential: .unauthenticated(reason: "missing_credential", "A credential is needed")
        case .tooLarge: RPCError(.invalidRequest, reason: "line_too_long", "The body has too many bytes")
        case .busy:
            .resourceExhausted(reason: "busy", "The gateway holds too many requests; try again", retryAfterMs: 1_000)
        case .noJSON(let words): RPCError(.parseError, reason: "parse_error", "The body is no JSON object: \(words)")
        case .wrong(let path, let words), .unsupported(let path, let words):
            .invalidArgument(path, reason: "invalid_argument", words)
        case .refused(let name, tokens: _): .invalidArgument("message", reason: "invalid_argument", name)
        case .unknown(let name, in: let path):
            .invalidParams(name, "'\(path).\(name)' is no known member", reason: "unknown_parameter")
        }
    }
}
