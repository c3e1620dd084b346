public import HatoModel
import NIOCore

/// Calls a server: pipelined over one connection, which is made when first needed and made again when lost.
///
/// A call that is in flight when its connection breaks fails with `unavailable` (reason `connection_lost`): whether
/// the server did it is unknown. It is retryable where the request is idempotent (`RPCRequest.isIdempotent`), as is
/// one without a response in time (`timeout`). Calls made one after another reach the server in that order.
/// Subscriptions live as long as they and the client are held.
public final class RPCClient: Sendable {
    private let configuration: RPCClientConfiguration
    private let link: ClientLink

    public init(_ configuration: RPCClientConfiguration) {
        self.configuration = configuration
        link = ClientLink(configuration)
    }

    deinit { link.post(.close(link.loop.makePromise())) }

    // MARK: Calls

    /// `credential` is for this call only, instead of the identity of the connection. Throws `RPCError`, or
    /// `CancellationError` when the task is cancelled (the server may do it all the same).
    public func call<Request: RPCRequest>(_ request: Request, credential: String? = nil) async throws -> Request.Result
    {
        do {
            let result = try await call(
                method: Request.method, params: request.members, credential: credential)
            return try Request.decodeResult(result)
        } catch let error as RPCError where request.isIdempotent {
            throw error.ofIdempotentCall
        }
    }

    /// Calls a method by name. Throws `RPCError`, or `CancellationError` when the task is cancelled.
    public func call(method: String, params: JSONObject = [:], credential: String? = nil) async throws -> JSONValue {
        let text: [UInt8] = try await waiting(method, Self.adding(credential, to: params)) { .result($0) }
        do { return try JSONParser.parse(text, depth: configuration.nestingMax) } catch {
            throw RPCError.badResponse("\(error)")
        }
    }

    /// The text of the result: for callers that read it in part. A response of more than `bytesMax` bytes is not kept:
    /// `RPCError` (resource_exhausted, `too_big`). Throws as `call` otherwise.
    public func resultText<Request: RPCRequest>(of request: Request, bytesMax: Int) async throws -> [UInt8] {
        do {
            return try await waiting(Request.method, request.members, responseBytesMax: bytesMax) { .result($0) }
        } catch let error as RPCError where request.isIdempotent {
            throw error.ofIdempotentCall
        }
    }

    /// The same of a method by name. Throws as that.
    public func resultText(method: String, params: JSONObject, bytesMax: Int) async throws -> [UInt8] {
        try await waiting(method, params, responseBytesMax: bytesMax) { .result($0) }
    }

    /// Calls without waiting: for callers that keep many requests in flight. `params` is the whole object as JSON text;
    /// `completion` gets the text of the result, on the client's event loop, which it must not block.
    public func send(
        method: String, params: EncodedJSON, completion: @escaping @Sendable (Result<[UInt8], RPCError>) -> Void
    ) {
        post(
            OutgoingCall(
                id: link.newID(), method: method, params: params.bytes, deadline: deadline,
                completion: .result(completion)))
    }

    // MARK: Subscriptions

    /// Calls a method that opens a listener; its result names the subscription. Throws `RPCError`, or
    /// `CancellationError` when the task is cancelled. Whatever ends the waiting or the reading here, the listener ends
    /// on the server too: the client calls the counterpart of the method (`messages.unlisten`) for it.
    public func subscribe<Request: RPCRequest>(
        _ request: Request, credential: String? = nil
    ) async throws -> RPCSubscription {
        try await subscribe(method: Request.method, params: request.members, credential: credential)
    }

    /// Calls a method that opens a listener, by name. Throws as the one above.
    public func subscribe(
        method: String, params: JSONObject = [:], credential: String? = nil
    ) async throws -> RPCSubscription {
        let params = Self.adding(credential, to: params)
        let ending = SubscriptionEnding(of: method, credential: params["auth"])
        do {
            return try await waiting(method, params) { .subscription(ending, $0) }
        } catch let error as RPCError {
            // What a lost call has opened is gone with the connection, or ended by the client.
            throw error.ofIdempotentCall
        }
    }

    /// Ends the connection; every call in flight and every later one fails with `unavailable`.
    public func close() async {
        let promise = link.loop.makePromise(of: Void.self)
        link.post(.close(promise))
        try? await promise.futureResult.get()
    }

    // MARK: -

    private func waiting<Value: Sendable>(
        _ method: String, _ params: JSONObject, responseBytesMax: Int = .max,
        _ completion: (@escaping @Sendable (Result<Value, RPCError>) -> Void) -> OutgoingCall.Completion
    ) async throws -> Value {
        let id = link.newID()
        let text = EncodedJSON(.object(params)).bytes
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await withCheckedThrowingContinuation { continuation in
                let resume: @Sendable (Result<Value, RPCError>) -> Void = { outcome in
                    continuation.resume(
                        with: outcome.mapError { $0 == RPCError.abandoned ? CancellationError() : $0 as any Error })
                }
                post(
                    OutgoingCall(
                        id: id, method: method, params: text, deadline: deadline, responseBytesMax: responseBytesMax,
                        completion: completion(resume)))
                // The task may have been cancelled before there was a call to abandon.
                if Task.isCancelled { link.post(.abandon(id)) }
            }
        } onCancel: {
            link.post(.abandon(id))
        }
    }

    private var deadline: NIODeadline { NIODeadline.now() + TimeAmount(configuration.timeout) }

    private func post(_ call: OutgoingCall) { link.post(.call(call)) }

    private static func adding(_ credential: String?, to params: JSONObject) -> JSONObject {
        guard let credential else { return params }
        var params = params
        params["auth"] = .string(credential)
        return params
    }
}
