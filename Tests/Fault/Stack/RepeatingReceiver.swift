import HatoModel
import HatoRuntime
import Synchronization
import TestFirebase

/// Accepts every webhook, and every message to a phone, and records its id and body.
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

        mutating func came(_ id: String, at device: String, _ title: String, _ body: [UInt8]) {
            count += 1
            if bodies[id] == nil {
                titles[device, default: []].append(title)
                deliveries[title, default: 0] += 1
            }
            bodies[id, default: []].append(String(decoding: body, as: UTF8.self))
        }
    }

    private final class Guarded: Sendable { let log = Mutex(Log()) }

    private let guarded: Guarded
    private let listener: HTTPListener
    /// Its phones are known by their tokens.
    let firebase: FCMStandIn

    /// - Parameter mails: takes the e-mails of the app.
    init(mails: MailReceiver? = nil) async throws {
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
                log.came(id, at: device, title, request.body)
                if let notification = data?["notification"]?.string, let token = data?["hato"]?["reply"]?.string {
                    log.replies[title, default: [:]][device] = Reply(notification: notification, token: token)
                }
            }
            return HTTPResponse(status: 204)
        }
        firebase = try await FCMStandIn { Self.take($0, guarded) }
        guard let mails else { return }
        let url = "smtp://127.0.0.1:\(mails.port)"
        let mail = "  mail: {url: \"\(url)\", from: \"chat@example.com\", tls: none}\n"
        try firebase.write("apps.yaml", try firebase.read("apps.yaml") + mail)
    }

    /// Records a message: a notification is one for each phone.
    private static func take(_ message: JSONValue, _ guarded: Guarded) -> HTTPResponse? {
        let hato = message["data"]?["hato"]?.string.flatMap { try? JSONParser.parse(Array($0.utf8)) }
        guard let token = message["token"]?.string, let id = hato?["id"]?.string,
            let title = message["notification"]?["title"]?.string
        else { return HTTPResponse(status: 400) }
        // Not its time to live, nor the badge: they are those of the attempt.
        let same: JSONValue = [
            "notification": message["notification"] ?? nil, "data": message["data"] ?? nil,
            "tag": message["android"]?["notification"]?["tag"] ?? nil,
            "collapse": message["apns"]?["headers"]?["apns-collapse-id"] ?? nil,
        ]
        guarded.log.withLock { $0.came("\(id) \(token)", at: token, title, same.encoded) }
        return nil
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
    func stop() async {
        await listener.stop()
        await firebase.stop()
    }
}
