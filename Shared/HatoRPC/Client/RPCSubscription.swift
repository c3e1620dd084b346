public import HatoModel

/// The notifications to one listener, in order. Ends when cancelled or after the server's last word (`….cancelled`);
/// throws `RPCError` (unavailable) when the connection is lost: the subscriber listens again from the position it has seen.
public final class RPCSubscription: AsyncSequence, Sendable {
    public typealias Element = RPCEvent

    /// The name of the subscription on its connection.
    public let id: String
    /// What the call that opened it answered.
    public let result: JSONObject

    init(id: String, result: JSONObject) {
        self.id = id
        self.result = result
    }

    public func makeAsyncIterator() -> Iterator { Iterator() }

    /// Stops delivering; tell the server with its own method (`messages.unlisten`) or close the client.
    public func cancel() {}

    public struct Iterator: AsyncIteratorProtocol {
        public mutating func next() async throws -> RPCEvent? { nil }
    }
}

/// One notification from a server.
public struct RPCEvent: Sendable, Hashable {
    public var method: String
    public var params: JSONObject

    public init(method: String, params: JSONObject) {
        self.method = method
        self.params = params
    }
}
