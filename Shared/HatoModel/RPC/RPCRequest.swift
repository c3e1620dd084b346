/// A method, declared once: its name, params, result, access, effect, errors, and one example.
///
/// Server, client, command line, the OpenRPC document and METHODS.md are derived from this declaration. The conforming
/// type is the params: each stored property is a parameter with an entry in the table `fields`. It is nested in the
/// namespace of its service (`Messages.Push` is `messages.push`; a test checks that type and wire name agree).
public protocol RPCRequest: FieldObject {
    associatedtype Result: FieldValue

    /// The name on the wire, e.g. `messages.push`.
    static var method: String { get }
    /// One or two sentences for people, without a full stop at the end.
    static var summary: String { get }
    static var access: Access { get }
    static var effect: Effect { get }
    /// Whether executing it twice has the same effect as once, apart from the time of the write: then it may be sent
    /// again when its outcome is unknown.
    var isIdempotent: Bool { get }
    /// Whether the response may come after those of later requests on the same connection (protocol §1).
    static var isSlow: Bool { get }
    /// Whether a read also has an effect: starts or ends a listener, writes a backup. Only such reads are executed
    /// without an id.
    static var hasSideEffect: Bool { get }
    /// The errors that it may return besides those of every method (`MethodError.general`).
    static var errors: [MethodError] { get }
    static var example: RPCExample<Self> { get }

    /// Decodes the request from its params, without `auth` and `as`. Throws `RPCError` that names the parameter.
    static func decode(_ params: JSONObject) throws(RPCError) -> Self
}

extension RPCRequest {
    public static var isSlow: Bool { false }
    public static var hasSideEffect: Bool { false }
    public static var errors: [MethodError] { [] }
}

/// A JSON-RPC notification from server to client.
public protocol RPCNotification: FieldObject {
    static var method: String { get }
    static var summary: String { get }
    static var example: Self { get }
}

/// The callers that may call a method; checked before its params are decoded.
public enum Access: String, FieldChoice {
    /// Any caller, signed in or not.
    case anyone
    /// A user with a valid ID token, or an administrator.
    case signedIn
    /// Any caller; the security rules decide about the path.
    case rules
    /// Only the holder of the administrator key.
    case administrator
}

/// Whether a method changes state; decides its order on a connection.
public enum Effect: String, FieldChoice {
    case read
    case write
}

/// An example call of a method, for the documents and for the test that every example decodes.
public struct RPCExample<Request: RPCRequest>: Sendable {
    /// The params of the call.
    public var request: Request
    /// The result of the request.
    public var result: Request.Result

    public init(_ request: Request, _ result: Request.Result) {
        self.request = request
        self.result = result
    }
}

/// The result `{}`.
public struct Empty: FieldObject, Hashable {
    public static let fields = Fields<Self>(blank: Self())

    public init() {}
}
