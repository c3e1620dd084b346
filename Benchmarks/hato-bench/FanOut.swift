import HatoModel
import HatoRPC
import Synchronization

/// Posts into one room, and their delays at those who listen there.
struct FanOut: Sendable {
    var room: String
    var postsPerSecond: Int
    var writer: RPCClient

    /// Each post at its time, however long the one before it took.
    func paced(_ posts: Int, to sockets: [RawSocket]) async throws -> Window {
        try await deliveries(of: posts, to: sockets) { try await pace($0) }
    }

    /// All at once; ends when all have a response.
    func burst(of posts: Int, to sockets: [RawSocket]) async throws -> Window {
        try await deliveries(of: posts, to: sockets) { try await burst($0) }
    }

    /// The delays of so many posts at the listeners.
    private func deliveries(
        of posts: Int, to sockets: [RawSocket], _ write: (Int) async throws -> Void
    ) async throws -> Window {
        async let window = Blocking.run {
            var reader = try DeliveryReader(sockets)
            return try reader.window(of: posts)
        }
        try await write(posts)
        return try await window
    }

    private func pace(_ posts: Int) async throws {
        let clock = ContinuousClock()
        let start = clock.now
        for number in 0..<posts {
            try await Task.sleep(until: start + .milliseconds(number * 1_000 / postsPerSecond), clock: clock)
            let params: JSONObject = [
                "path": .string("/chats/\(room)/messages"),
                "value": ChatRequests.message(number, text: DeliveryReader.text()),
            ]
            _ = try await writer.call(method: Messages.Push.method, params: params)
        }
    }

    private func burst(_ posts: Int) async throws {
        let requests = (0..<posts).map {
            ChatRequests.push(room: room, ChatRequests.message($0, text: DeliveryReader.text()))
        }
        let missing = Atomic(posts)
        let failure = Mutex<BenchError?>(nil)
        await withCheckedContinuation { continuation in
            for request in requests {
                writer.send(method: Messages.Push.method, params: request) { result in
                    if case .failure(let error) = result { failure.withLock { $0 = BenchError("push: \(error)") } }
                    if missing.wrappingSubtract(1, ordering: .sequentiallyConsistent).newValue == 0 {
                        continuation.resume()
                    }
                }
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
