public import HatoModel
public import HatoRPC

/// The client of a command: every call carries the identity from the options.
public struct CommandClient: Sendable {
    /// For commands that keep many requests in flight; its connection has the identity of the options, but not `--as`.
    public let rpc: RPCClient
    private let settings: ClientSettings

    public init(_ settings: ClientSettings) {
        self.settings = settings
        rpc = RPCClient(settings.configuration)
    }

    /// Calls a declared method. Throws `RPCError`.
    public func call<Request: RPCRequest>(_ request: Request) async throws -> Request.Result {
        try Request.decodeResult(try await call(method: Request.method, params: request.members))
    }

    /// Calls a method by name. Throws `RPCError`.
    public func call(method: String, params: JSONObject) async throws -> JSONValue {
        try await rpc.call(method: method, params: identified(params))
    }

    /// Sends a call without waiting; calls reach the server in the order of `send`. `completion` gets the text of the
    /// result, on the client's event loop, which it must not block.
    public func send(
        method: String, params: JSONObject, completion: @escaping @Sendable (Result<[UInt8], RPCError>) -> Void
    ) {
        rpc.send(method: method, params: EncodedJSON(.object(identified(params))), completion: completion)
    }

    /// Opens a subscription with a declared method. Throws `RPCError`.
    public func subscribe<Request: RPCRequest>(_ request: Request) async throws -> RPCSubscription {
        try await subscribe(method: Request.method, params: request.members)
    }

    /// Opens a subscription with a method by name. Throws `RPCError`.
    public func subscribe(method: String, params: JSONObject) async throws -> RPCSubscription {
        try await rpc.subscribe(method: method, params: identified(params))
    }

    /// Closes the connection.
    public func close() async { await rpc.close() }

    /// The connection is authenticated; only `as` must be in every call, with the key that allows it.
    private func identified(_ params: JSONObject) -> JSONObject {
        guard let speaksAs = settings.speaksAs, let credential = settings.credential, params["auth"] == nil else {
            return params
        }
        var params = params
        params["auth"] = .string(credential)
        params["as"] = speaksAs
        return params
    }
}
