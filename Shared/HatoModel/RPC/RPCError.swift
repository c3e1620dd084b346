/// A JSON-RPC error as on the wire (protocol §3): code, message for people, and `data` with a stable `reason`.
public struct RPCError: Error, Sendable, Hashable {
    /// The number of an error: those of JSON-RPC 2.0 §5.1 and Hato's own (protocol §3).
    public struct Code: Sendable, Hashable, RawRepresentable {
        public var rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The line is not JSON.
        public static let parseError = Code(rawValue: -32700)
        /// The line is JSON, but no request.
        public static let invalidRequest = Code(rawValue: -32600)
        /// There is no such method.
        public static let methodNotFound = Code(rawValue: -32601)
        /// A parameter is missing, unknown or of another JSON type.
        public static let invalidParams = Code(rawValue: -32602)
        /// The service failed; its log has the details.
        public static let internalError = Code(rawValue: -32603)
        /// The credential is missing, wrong or expired.
        public static let unauthenticated = Code(rawValue: -32001)
        /// The caller is known and lacks permission.
        public static let permissionDenied = Code(rawValue: -32002)
        /// The named thing does not exist.
        public static let notFound = Code(rawValue: -32003)
        /// The thing to be created exists already.
        public static let alreadyExists = Code(rawValue: -32004)
        /// The state does not allow it.
        public static let failedPrecondition = Code(rawValue: -32005)
        /// A limit is reached.
        public static let resourceExhausted = Code(rawValue: -32006)
        /// It cannot be done now.
        public static let unavailable = Code(rawValue: -32007)
        /// A parameter has the right JSON type and a wrong content.
        public static let invalidArgument = Code(rawValue: -32008)

        /// The name in documents.
        var name: String {
            switch self {
            case .parseError: "parse_error"
            case .invalidRequest: "invalid_request"
            case .methodNotFound: "method_not_found"
            case .invalidParams: "invalid_params"
            case .internalError: "internal_error"
            case .unauthenticated: "unauthenticated"
            case .permissionDenied: "permission_denied"
            case .notFound: "not_found"
            case .alreadyExists: "already_exists"
            case .failedPrecondition: "failed_precondition"
            case .resourceExhausted: "resource_exhausted"
            case .unavailable: "unavailable"
            case .invalidArgument: "invalid_argument"
            default: "error"
            }
        }
    }

    /// The number.
    public var code: Code
    /// The problem, for people.
    public var message: String
    /// Everything under `data`: `reason` and `retryable` first, then members that depend on the code (`parameter`,
    /// `path`, `etag` …).
    public var data: JSONObject

    /// An error; `data` adds members after `reason` and `retryable`.
    public init(_ code: Code, reason: String, _ message: String, retryable: Bool = false, data: JSONObject = [:]) {
        self.code = code
        self.message = message
        var all: JSONObject = ["reason": .string(reason), "retryable": .bool(retryable)]
        for member in data.members { all[member.name] = member.value }
        self.data = all
    }

    /// An error that was received.
    public init(received code: Code, message: String, data: JSONObject) {
        self.code = code
        self.message = message
        self.data = data
    }

    /// The problem, for programs.
    public var reason: String? { data["reason"]?.string }
    /// Whether the same call may succeed later and does no harm when repeated.
    public var isRetryable: Bool { data["retryable"]?.bool ?? false }

    /// The time until the same call may succeed (`retryAfterMs`); nil when the error does not say.
    public var retryAfter: Duration? {
        guard let milliseconds = data["retryAfterMs"]?.number, milliseconds >= 0 else { return nil }
        // A peer may send any number: values above a year are cut to a year.
        return .milliseconds(Int64(min(milliseconds, 365 * 86_400_000)))
    }
}

extension RPCError {
    /// -32602: a parameter is missing, unknown or of the wrong JSON type.
    public static func invalidParams(_ parameter: String, _ message: String, reason: String = "invalid_params")
        -> RPCError
    {
        RPCError(.invalidParams, reason: reason, message, data: ["parameter": .string(parameter)])
    }

    /// -32008: the parameter has the right type, but a wrong value. The message should name a valid one, with an
    /// example.
    public static func invalidArgument(_ parameter: String, reason: String, _ message: String) -> RPCError {
        RPCError(.invalidArgument, reason: reason, message, data: ["parameter": .string(parameter)])
    }

    /// -32001: the credential is missing, wrong or expired; `parameter` has it, nil where that is `auth`.
    public static func unauthenticated(reason: String, _ message: String, at parameter: String? = nil) -> RPCError {
        RPCError(.unauthenticated, reason: reason, message, data: parameter.map { ["parameter": .string($0)] } ?? [:])
    }

    /// -32002; `path` is where the rules denied the operation, nil when the access level of the method did.
    public static func permissionDenied(path: String? = nil, _ message: String = "Permission denied") -> RPCError {
        RPCError(
            .permissionDenied, reason: "permission_denied", message, data: path.map { ["path": .string($0)] } ?? [:])
    }

    /// -32003: the named thing does not exist.
    public static func notFound(reason: String, _ message: String) -> RPCError {
        RPCError(.notFound, reason: reason, message)
    }

    /// -32004: the thing to be created exists already.
    public static func alreadyExists(reason: String, _ message: String) -> RPCError {
        RPCError(.alreadyExists, reason: reason, message)
    }

    /// -32005: the state does not allow it.
    public static func failedPrecondition(reason: String, _ message: String, data: JSONObject = [:]) -> RPCError {
        RPCError(.failedPrecondition, reason: reason, message, data: data)
    }

    /// -32006; `retryAfterMs` is the time until the same call may succeed, nil when it never will.
    public static func resourceExhausted(reason: String, _ message: String, retryAfterMs: Int? = nil) -> RPCError {
        RPCError(
            .resourceExhausted, reason: reason, message, retryable: retryAfterMs != nil,
            data: retryAfterMs.map { ["retryAfterMs": .number(Double($0))] } ?? [:])
    }

    /// -32007: impossible now; the same call may succeed later.
    public static func unavailable(reason: String, _ message: String) -> RPCError {
        RPCError(.unavailable, reason: reason, message, retryable: true)
    }

    /// -32603: never carries internal details; these go to the log.
    public static let internalError = RPCError(
        .internalError, reason: "internal", "Internal error; the service's log has the details")
}

/// The error of a value type's `init(from:)` when the text has the right JSON type but wrong contents; decoding of
/// params turns it into `invalid_argument` with the name of the parameter.
public struct ArgumentError: Error, Sendable, Hashable {
    /// The problem, for programs.
    public var reason: String
    /// The problem and a valid value, for people.
    public var message: String

    public init(reason: String, _ message: String) {
        self.reason = reason
        self.message = message
    }
}
