import HatoModel
import HatoRuntime
import Synchronization

/// Accepts every webhook and records the path of its message.
final class WebhookReceiver: Sendable {
    private final class Log: Sendable {
        let times = Mutex<[String: Int]>([:])
    }

    private let log: Log
    private let listener: HTTPListener

    init() async throws {
        let log = Log()
        self.log = log
        listener = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
            if let path = (try? JSONParser.parse(request.body))?["data"]?["path"]?.string {
                log.times.withLock { $0[path, default: 0] += 1 }
            }
            return HTTPResponse(status: 204)
        }
    }

    var url: String { "http://127.0.0.1:\(listener.port)/hook" }

    /// How often each message was delivered.
    var times: [String: Int] { log.times.withLock { $0 } }

    func stop() async { await listener.stop() }
}
