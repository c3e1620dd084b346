import HatoPush
import HatoRuntime
import Synchronization

/// A receiver of requests that answers what the test says and keeps what came.
final class Receiver: Sendable {
    struct Received: Sendable {
        var headers: WebhookHeaders
        /// All headers, by name in lower case.
        var fields: [String: String]
        var host: String?
        var target: String
        var body: [UInt8]
    }

    private let listener: HTTPListener
    private let holder: Holder

    /// `answer` gets the count of requests.
    convenience init(answer: @escaping @Sendable (Int) async -> HTTPResponse) async throws {
        try await self.init(response: { _, count in await answer(count) })
    }

    /// `response` gets the request and the count of requests.
    init(response: @escaping @Sendable (Received, Int) async -> HTTPResponse) async throws {
        let log = Holder()
        listener = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
            let headers = WebhookHeaders(
                id: request.header("webhook-id"), timestamp: request.header("webhook-timestamp"),
                signature: request.header("webhook-signature"))
            let received = Received(
                headers: headers, fields: Dictionary(request.headers.map { ($0.name, $0.value) }) { $1 },
                host: request.header("host"), target: request.target, body: request.body)
            return await response(received, log.add(received))
        }
        holder = log
    }

    private final class Holder: Sendable {
        private let log = Mutex<[Received]>([])
        func add(_ received: Received) -> Int {
            log.withLock { log in
                log.append(received)
                return log.count
            }
        }
        var all: [Received] { log.withLock { $0 } }
    }

    var received: [Received] { holder.all }
    var port: Int { listener.port }
    func stop() async { await listener.stop() }
}
