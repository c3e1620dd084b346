import Foundation
import HatoModel
import HatoRPC
import HatoRuntime
import HatoTesting
import Synchronization
import Testing

/// `kill -9` of the notifier between the steps of a delivery: each notification with a response arrives at each device,
/// in its order, and repetitions have one id and one body.
@Suite("Pushes while the notifier is killed", .serialized, .timeLimit(.minutes(30)))
struct PushKillTests {
    /// The failpoints, and at which passing a run is killed there: a start passes those of a commit some times.
    private static let places = [
        ("commit.beforeSync", 12...60), ("commit.afterSync", 12...60), ("commit.beforeAnswer", 12...60),
        ("push.beforeAttempt", 1...40), ("push.afterResponse", 1...40), ("push.afterPage", 1...40),
    ]

    @Test func everyAcceptedNotificationArrivesAndRepetitionsHaveOneID() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        print("push kill test: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        let receiver = try await RepeatingReceiver()
        let notifier = try LoneNotifier(receiver)
        try await notifier.start()
        try await notifier.registerDevices()
        await notifier.program.stop()
        for _ in 0..<FaultSettings.kills {
            for (name, passings) in Self.places.shuffled(using: &random) {
                let count = Int.random(in: passings, using: &random)
                // Deliveries are made in pages of two then, and notifications may come in another order.
                let isInPages = name == "push.afterPage"
                try await notifier.start(failpoints: "\(name)=kill@\(count)", isInPages: isInPages)
                let sent = await notifier.sendUntilItDies()
                #expect(await notifier.program.diedAtFailpoint(), "\(name)=kill@\(count)")
                try await notifier.start()
                try await notifier.check(sent, "\(name)=kill@\(count)", isInOrder: !isInPages)
                await notifier.program.stop()
            }
        }
        let repeated = receiver.bodies.values.count { $0.count > 1 }
        print("\(receiver.bodies.count) deliveries, \(repeated) of them repeated")
        for (id, bodies) in receiver.bodies { #expect(Set(bodies).count == 1, "\(id) has several bodies") }
        await receiver.stop()
        try FileManager.default.removeItem(atPath: notifier.folder)
    }
}

/// Accepts every webhook and records its id and body.
private final class RepeatingReceiver: Sendable {
    private struct Log {
        /// By `webhook-id`.
        var bodies: [String: [String]] = [:]
        /// The titles that a device got, in the order in which they came first.
        var titles: [String: [String]] = [:]
    }

    private final class Guarded: Sendable { let log = Mutex(Log()) }

    private let guarded: Guarded
    private let listener: HTTPListener

    init() async throws {
        let guarded = Guarded()
        self.guarded = guarded
        listener = try await HTTPListener(host: "127.0.0.1", port: 0) { request in
            let data = (try? JSONParser.parse(request.body))?["data"]
            guard let id = request.header("webhook-id"), let device = data?["device"]?.string,
                let title = data?["title"]?.string
            else { return HTTPResponse(status: 400) }
            guarded.log.withLock { log in
                if log.bodies[id] == nil { log.titles[device, default: []].append(title) }
                log.bodies[id, default: []].append(String(decoding: request.body, as: UTF8.self))
            }
            return HTTPResponse(status: 204)
        }
    }

    func url(_ name: String) -> String { "http://127.0.0.1:\(listener.port)/\(name)" }
    var bodies: [String: [String]] { guarded.log.withLock { $0.bodies } }
    func titles(of device: String) -> [String] { guarded.log.withLock { $0.titles[device] ?? [] } }
    func stop() async { await listener.stop() }
}

/// `hato-notifier serve` alone, with devices of two users.
private final class LoneNotifier {
    struct Sent {
        var title: String
        /// Whether there was a response.
        var isAcknowledged: Bool
    }

    let folder: String
    let program: Program
    private let receiver: RepeatingReceiver
    private let key = UUID().uuidString + UUID().uuidString
    private var port = 0
    private var count = 0
    private var devices: [String] = []

    init(_ receiver: RepeatingReceiver) throws {
        self.receiver = receiver
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("hato-push-fault-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        _ = FileManager.default.createFile(
            atPath: "\(folder)/admin-key", contents: Data("\(key)\n".utf8), attributes: [.posixPermissions: 0o600])
        program = try Program("hato-notifier", logFile: "\(folder)/notifier.log")
    }

    func start(failpoints: String? = nil, isInPages: Bool = false) async throws {
        // Neither auth nor messages is needed by what an administrator sends.
        let pages = isInPages ? ["--deliveries-at-once-max", "2"] : []
        let ready = try await program.start(
            [
                "serve", "--data", "\(folder)/notifier", "--admin-key-file", "\(folder)/admin-key",
                "--exit-with-stdin", "--auth", "127.0.0.1:1", "--messages", "127.0.0.1:1",
                "--allow-private-webhooks", "--port", "0",
            ] + pages, failpoints: failpoints)
        port = ready["listening"]?.string?.split(separator: ":").last.flatMap { Int($0) } ?? 0
    }

    private var client: RPCClient {
        RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: port).with(credential: key))
    }

    func registerDevices() async throws {
        let client = client
        for (uid, name) in [("u1", "a"), ("u1", "b"), ("u2", "c")] {
            devices.append(
                try await client.call(Notifier.Devices.Register(url: receiver.url(name), uid: uid)).device)
        }
        await client.close()
    }

    private func request(_ title: String) -> Notifier.Send {
        var send = Notifier.Send(to: .init(uids: ["u1", "u2"]), notification: .init(title: title))
        send.idempotencyKey = title
        return send
    }

    func sendUntilItDies() async -> [Sent] {
        let client = client
        var sent: [Sent] = []
        var isAlive = true
        while isAlive {
            count += 1
            let title = "n\(count)"
            do { _ = try await client.call(request(title)) } catch { isAlive = false }
            sent.append(Sent(title: title, isAcknowledged: isAlive))
        }
        await client.close()
        return sent
    }

    func check(_ sent: [Sent], _ name: String, isInOrder: Bool) async throws {
        let client = client
        // What has no response is sent again, as a client would: the key makes it one notification.
        for entry in sent where !entry.isAcknowledged { _ = try await client.call(request(entry.title)) }
        _ = try await waiting(for: "the end of the outbox") {
            try await client.call(Notifier.Stats()).pending == 0 ? true : nil
        }
        if !isInOrder { try await waitForPages(of: sent, client) }
        #expect(try await client.call(Notifier.Stats()).dead == 0)
        let titles = sent.map(\.title)
        for device in devices {
            let got = receiver.titles(of: device).filter(Set(titles).contains)
            let expected = isInOrder ? titles : titles.sorted()
            #expect(
                (isInOrder ? got : got.sorted()) == expected, "\(name): \(device) did not get each once, in order")
        }
        await client.close()
    }

    /// The outbox may be empty between two pages.
    private func waitForPages(of sent: [Sent], _ client: RPCClient) async throws {
        for entry in sent {
            guard let id = try await client.call(request(entry.title)).notification else { continue }
            _ = try await waiting(for: "all deliveries") {
                let status = try await client.call(Notifier.Status(notification: id))
                let areMade = status.fanOut == nil && status.deliveries.count == 3
                return areMade && status.deliveries.allSatisfy { $0.state == .delivered } ? true : nil
            }
        }
    }
}
