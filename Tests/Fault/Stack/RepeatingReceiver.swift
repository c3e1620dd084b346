import HatoModel
import HatoRuntime
import Synchronization

/// Accepts every webhook and records its id and body.
final class RepeatingReceiver: Sendable {
    /// What a push lets its app do.
    struct Reply: Sendable {
        var notification: String
        var token: String
    }

    private struct Log {
        /// By `webhook-id`.
        var bodies: [String: [String]] = [:]
        var count = 0
        /// The titles that a device got, in the order in which they came first.
        var titles: [String: [String]] = [:]
        /// The deliveries of each title, without repetitions.
        var deliveries: [String: Int] = [:]
        /// By title and device.
        var replies: [String: [String: Reply]] = [:]
        /// The ids of reports of actions, by text.
        var reports: [String: Set<String>] = [:]
    }

    private final class Guarded: Sendable { let log = Mutex(Log()) }

    private let guarded: Guarded
    private let listener: HTTPListener

    init() async throws {
        let guarded = Guarded()
        self.guarded = guarded
        listener = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
            let data = (try? JSONParser.parse(request.body))?["data"]
            if let id = request.header("webhook-id"), data?["action"] != nil, let text = data?["text"]?.string {
                guarded.log.withLock { log in
                    log.reports[text, default: []].insert(id)
                    log.bodies[id, default: []].append(String(decoding: request.body, as: UTF8.self))
                }
                return HTTPResponse(status: 204)
            }
            guard let id = request.header("webhook-id"), let device = data?["device"]?.string,
                let title = data?["title"]?.string
            else { return HTTPResponse(status: 400) }
            guarded.log.withLock { log in
                log.count += 1
                if log.bodies[id] == nil {
                    log.titles[device, default: []].append(title)
                    log.deliveries[title, default: 0] += 1
                }
                log.bodies[id, default: []].append(String(decoding: request.body, as: UTF8.self))
                if let notification = data?["notification"]?.string, let token = data?["hato"]?["reply"]?.string {
                    log.replies[title, default: [:]][device] = Reply(notification: notification, token: token)
                }
            }
            return HTTPResponse(status: 204)
        }
    }

    func url(_ name: String) -> String { "http://127.0.0.1:\(listener.port)/\(name)" }
    var bodies: [String: [String]] { guarded.log.withLock { $0.bodies } }
    /// With repetitions.
    var count: Int { guarded.log.withLock { $0.count } }
    func titles(of device: String) -> [String] { guarded.log.withLock { $0.titles[device] ?? [] } }
    func deliveries(of title: String) -> Int { guarded.log.withLock { $0.deliveries[title] ?? 0 } }
    func reply(to title: String, at device: String) -> Reply? {
        guarded.log.withLock { $0.replies[title]?[device] }
    }
    var reports: [String: Set<String>] { guarded.log.withLock { $0.reports } }
    func stop() async { await listener.stop() }
}
