import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of the notifier between the steps of a delivery: each notification with a response arrives at each device,
/// and repetitions have one id and one body.
@Suite("Pushes while the notifier is killed", .serialized, .timeLimit(.minutes(30)))
struct PushKillTests {
    /// The failpoints, and at which passing a run is killed there: a start passes those of a commit some times.
    private static let places: FaultSettings.Places = [
        ("commit.beforeSync", 12...60), ("commit.afterSync", 12...60), ("commit.beforeAnswer", 12...60),
        ("push.afterAccept", 1...40), ("push.beforeAttempt", 1...40), ("push.afterResponse", 1...40),
        ("push.afterPage", 1...40), (nil, 1...60),
    ]

    @Test func everyAcceptedNotificationArrivesAndRepetitionsHaveOneID() async throws {
        try await PushKillRun.run("pushes", Self.places) { run, place in
            // Deliveries are made in pages of two then, and notifications may come in another order.
            try await run.round(place, page: place.name == "push.afterPage" ? 2 : nil)
        } prepare: { run in
            try await run.notifier.registerDevices(["a", "b"], of: "u1")
            try await run.notifier.registerDevices(["c"], of: "u2")
            run.target = .init(uids: ["u1", "u2"])
        }
    }

    /// The queue of a provider has leases, and attempts, of its own.
    private static let placesOfPhones: FaultSettings.Places = [
        ("commit.beforeSync", 12...60), ("commit.afterSync", 12...60), ("push.afterAccept", 1...40),
        ("push.beforeAttempt", 1...40), ("push.afterResponse", 1...40), (nil, 1...60),
    ]

    @Test func phonesOfAProviderGetEachNotificationAndRepetitionsHaveOneID() async throws {
        try await PushKillRun.run("phones", Self.placesOfPhones) { run, place in
            try await run.round(place, page: nil)
        } prepare: { run in
            try await run.notifier.registerPhones(["phone-1", "phone-2"], of: "u1")
            try await run.notifier.registerPhones(["phone-3"], of: "u2")
            run.target = .init(uids: ["u1", "u2"])
        }
    }

    /// Of more deliveries than a page has. Nothing is made twice, and nothing is left out.
    private static let placesOfPages: FaultSettings.Places = [
        ("push.afterPage", 1...80), ("commit.beforeSync", 12...120), ("commit.afterSync", 12...120),
        ("push.beforeAttempt", 1...500), ("push.afterResponse", 1...500), (nil, 1...500),
    ]

    @Test func everyDeviceOfATopicGetsEachNotificationUnderOneID() async throws {
        try await PushKillRun.run("topic", Self.placesOfPages) { run, place in
            try await run.round(place, page: 7, isOneAtATime: true)
        } prepare: { run in
            let client = run.notifier.client
            for user in 1...10 {
                try await run.notifier.registerDevices((1...25).map { "\(user).\($0)" }, of: "u\(user)")
                _ = try await client.call(Notifier.Topics.Subscribe(topic: "news", uid: "u\(user)"))
            }
            await client.close()
            run.target = .init(topic: "news")
        }
    }
}

/// Kills of one notifier, at each place as often as `FaultSettings.kills` says.
private final class PushKillRun {
    private struct Sent {
        var title: String
        /// Whether there was a response.
        var isAcknowledged: Bool
    }

    let notifier: LoneNotifier
    private let receiver: RepeatingReceiver
    var target = Notifier.SendTarget(uids: [])
    private var count = 0

    private init(_ receiver: RepeatingReceiver) throws {
        self.receiver = receiver
        notifier = try LoneNotifier(receiver)
    }

    static func run(
        _ name: String, _ all: FaultSettings.Places,
        _ round: (PushKillRun, KillPlace) async throws -> Void, prepare: (PushKillRun) async throws -> Void
    ) async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        let places = FaultSettings.chosen(all)
        print("kills, \(name): HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        let receiver = try await RepeatingReceiver()
        let run = try PushKillRun(receiver)
        try await run.notifier.start()
        try await prepare(run)
        await run.notifier.program.stop()
        for _ in 0..<FaultSettings.kills {
            for (name, counts) in places.shuffled(using: &random) {
                try await round(run, KillPlace(name: name, count: Int.random(in: counts, using: &random)))
            }
        }
        let bodies = receiver.bodies
        for (id, bodies) in bodies { #expect(Set(bodies).count == 1, "\(id) has several bodies") }
        print(
            "kills, \(name): \(places.count * FaultSettings.kills) kills, \(run.count) notifications, "
                + "\(bodies.count) deliveries, \(bodies.values.count { $0.count > 1 }) of them repeated")
        await receiver.stop()
        try FileManager.default.removeItem(atPath: run.notifier.folder)
    }

    /// One kill.
    ///
    /// - Parameters:
    ///   - page: the deliveries that are made at once; nil: all of a notification.
    ///   - isOneAtATime: whether each notification arrives before the next one is sent.
    func round(_ place: KillPlace, page: Int?, isOneAtATime: Bool = false) async throws {
        try await notifier.start(failpoints: place.failpoints, page: page)
        let killing = place.name == nil ? notifier.kill(after: place.count) : nil
        let sent = try await sendUntilItDies(isOneAtATime: isOneAtATime)
        if let killing {
            await killing.value
        } else {
            #expect(await notifier.program.diedAtFailpoint(), "\(place.text)")
        }
        try await notifier.start(page: isOneAtATime ? page : nil)
        try await check(sent, place.text, isInOrder: page == nil)
        await notifier.program.stop()
    }

    private func request(_ title: String) -> Notifier.Send {
        var send = Notifier.Send(to: target, notification: .init(title: title))
        send.idempotencyKey = title
        return send
    }

    private func sendUntilItDies(isOneAtATime: Bool) async throws -> [Sent] {
        let client = notifier.client
        var sent: [Sent] = []
        var isAlive = true
        while isAlive {
            count += 1
            let title = "n\(count)"
            do { _ = try await client.call(request(title)) } catch {
                // A stalled machine ends calls, too: the process says whether it has died.
                isAlive = try await waiting(for: "a response for \(title), or the end") { [notifier, target] in
                    var send = Notifier.Send(to: target, notification: .init(title: title))
                    send.idempotencyKey = title
                    if (try? await client.call(send)) != nil { return true }
                    return await notifier.program.isRunning ? nil : false
                }
            }
            sent.append(Sent(title: title, isAcknowledged: isAlive))
            guard isAlive, isOneAtATime else { continue }
            isAlive = try await waiting(for: "the deliveries of \(title)") { [receiver, notifier] in
                if receiver.deliveries(of: title) >= notifier.devices.count { return true }
                return await notifier.program.isRunning ? nil : false
            }
        }
        await client.close()
        return sent
    }

    private func check(_ sent: [Sent], _ name: String, isInOrder: Bool) async throws {
        let client = notifier.client
        // What has no response is sent again, as a client would: the key makes it one notification.
        for entry in sent where !entry.isAcknowledged { _ = try await client.call(request(entry.title)) }
        let devices = notifier.devices
        for entry in sent {
            _ = try await waiting(for: "\(name): the deliveries of \(entry.title)") { [receiver] in
                receiver.deliveries(of: entry.title) >= devices.count ? true : nil
            }
        }
        // The outbox may be empty between two pages, but not when all has come.
        _ = try await waiting(for: "the end of the outbox") {
            try await client.call(Notifier.Stats()).pending == 0 ? true : nil
        }
        #expect(try await client.call(Notifier.Stats()).dead == 0)
        let titles = sent.map(\.title)
        for device in devices {
            let got = receiver.titles(of: device).filter(Set(titles).contains)
            #expect(
                (isInOrder ? got : got.sorted()) == (isInOrder ? titles : titles.sorted()),
                "\(name): \(device) did not get each under one id")
        }
        await client.close()
    }
}
