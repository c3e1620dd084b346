public import HatoModel

/// Calls a server: pipelined over one connection, which is made when first needed and made again when lost.
///
/// A call that is in flight when its connection breaks fails with `unavailable` (reason `connection_lost`): whether the
/// server did it is unknown, so calling again is the caller's choice.
public final class RPCClient: Sendable {
    public init(_ configuration: RPCClientConfiguration) {}

    /// `credential` is for this call only, instead of the identity of the connection. Throws `RPCError`.
    public func call<Request: RPCRequest>(_ request: Request, credential: String? = nil) async throws -> Request.Result {
        throw RPCError.internalError
    }

    public func call(method: String, params: JSONObject = [:], credential: String? = nil) async throws -> JSONValue {
        throw RPCError.internalError
    }

    /// Calls a method that opens a listener; its result names the subscription. Throws `RPCError`.
    public func subscribe<Request: RPCRequest>(
        _ request: Request, credential: String? = nil
    ) async throws -> RPCSubscription {
        throw RPCError.internalError
    }

    public func subscribe(
        method: String, params: JSONObject = [:], credential: String? = nil
    ) async throws -> RPCSubscription {
        throw RPCError.internalError
    }

    /// Calls without waiting: for callers that keep many requests in flight. `params` is the whole object as JSON text;
    /// `completion` gets the whole answer's `result` as JSON text, on the client's thread.
    public func send(
        method: String, params: EncodedJSON, completion: @escaping @Sendable (Result<[UInt8], RPCError>) -> Void
    ) {}

    /// Ends the connection; every call in flight and every later one fails with `unavailable`.
    public func close() async {}
}
