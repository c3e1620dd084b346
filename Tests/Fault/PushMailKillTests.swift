import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// `kill -9` of the notifier between the steps of an e-mail: that of each notification with a response arrives, and
/// repetitions have one `Message-ID` and the same text.
@Suite("E-mails while the notifier is killed", .serialized, .timeLimit(.minutes(30)))
struct PushMailKillTests {
    /// The failpoints, and at which passing a run is killed there: a start passes those of a commit some times.
    private static let places: FaultSettings.Places = [
        ("commit.beforeSync", 12...60), ("commit.afterSync", 12...60), ("push.afterAccept", 1...30),
        ("push.beforeAttempt", 1...30), ("push.afterResponse", 1...30), (nil, 1...40),
    ]

    @Test func theMailOfEveryAcceptedNotificationArrivesAndRepetitionsHaveOneID() async throws {
        var random = SeededRandom(seed: UInt64(FaultSettings.seed))
        let places = FaultSettings.chosen(Self.places)
        print("kills, e-mails: HATO_FAULT_SEED=\(FaultSettings.seed) HATO_FAULT_KILLS=\(FaultSettings.kills)")
        let mails = try MailReceiver()
        let receiver = try await RepeatingReceiver(mails: mails)
        let run = try MailedUsers(receiver, mails)
        try await run.prepare()
        for _ in 0..<FaultSettings.kills {
            for (name, counts) in places.shuffled(using: &random) {
                try await run.round(KillPlace(name: name, count: Int.random(in: counts, using: &random)))
            }
        }
        for (id, texts) in mails.mails { #expect(Set(texts).count == 1, "\(id) has several texts") }
        print(
            "kills, e-mails: \(places.count * FaultSettings.kills) kills, \(mails.mails.count) e-mails, "
                + "\(mails.mails.values.count { $0.count > 1 }) of them repeated")
        mails.stop()
        await receiver.stop()
        try FileManager.default.removeItem(atPath: run.notifier.folder)
    }
}

/// Users with a mailbox each. An e-mail gathers what comes for its thread meanwhile, so each user gets the next
/// notification when the e-mail of the last one has come.
private final class MailedUsers {
    private struct Sent: Sendable {
        var title: String
        /// Whether there was a response.
        var isAcknowledged: Bool
    }

    let notifier: LoneNotifier
    private let mails: MailReceiver
    private static let users = (0..<12).map { "u\($0)" }

    init(_ receiver: RepeatingReceiver, _ mails: MailReceiver) throws {
        (notifier, self.mails) = (try LoneNotifier(receiver), mails)
    }

    func prepare() async throws {
        try await notifier.start(hasMails: true)
        for uid in Self.users { try await notifier.registerMailbox(of: uid) }
        await notifier.program.stop()
    }

    private static func request(_ title: String, to uid: String) -> Notifier.Send {
        var send = Notifier.Send(to: .init(uids: [uid]), notification: .init(title: title))
        send.idempotencyKey = title
        return send
    }

    /// One kill.
    func round(_ place: KillPlace) async throws {
        try await notifier.start(failpoints: place.failpoints, hasMails: true)
        let goal = mails.count + place.count
        let killing =
            place.name == nil
            ? Task { [mails, program = notifier.program] in
                try? await eventually("\(goal) e-mails", within: FaultSettings.patience) { mails.count >= goal }
                await program.kill()
            } : nil
        let (client, program) = (notifier.client, notifier.program)
        let sent = try await withThrowingTaskGroup(of: (uid: String, sent: [Sent]).self) { [mails] group in
            for uid in Self.users {
                group.addTask { (uid, try await Self.sendUntilItDies(to: uid, client, mails, program)) }
            }
            return try await group.reduce(into: [:]) { $0[$1.uid] = $1.sent }
        }
        await client.close()
        if let killing {
            await killing.value
        } else {
            #expect(await notifier.program.diedAtFailpoint(), "\(place.text)")
        }
        try await notifier.start(hasMails: true)
        try await check(sent, place.text)
        await notifier.program.stop()
    }

    private static func sendUntilItDies(
        to uid: String, _ client: RPCClient, _ mails: MailReceiver, _ program: Program
    ) async throws -> [Sent] {
        var sent: [Sent] = []
        while true {
            // The subject stands in the e-mail as it is.
            let title = "\(uid) \(UUID().uuidString)"
            var isAlive = true
            do { _ = try await client.call(request(title, to: uid)) } catch { isAlive = false }
            sent.append(Sent(title: title, isAcknowledged: isAlive))
            guard isAlive else { return sent }
            isAlive = try await waiting(for: "the e-mail of \(title)") {
                if !mails.ids(of: title).isEmpty { return true }
                return await program.isRunning ? nil : false
            }
            if !isAlive { return sent }
        }
    }

    private func check(_ sent: [String: [Sent]], _ name: String) async throws {
        let client = notifier.client
        for (uid, sent) in sent {
            // What has no response is sent again, as a client would: the key makes it one notification.
            for entry in sent where !entry.isAcknowledged {
                _ = try await client.call(Self.request(entry.title, to: uid))
            }
        }
        for entry in sent.values.flatMap(\.self) {
            _ = try await waiting(for: "\(name): the e-mail of \(entry.title)") { [mails] in
                mails.ids(of: entry.title).isEmpty ? nil : true
            }
        }
        _ = try await waiting(for: "the end of the outbox") {
            try await client.call(Notifier.Stats()).pending == 0 ? true : nil
        }
        for entry in sent.values.flatMap(\.self) {
            #expect(mails.ids(of: entry.title).count == 1, "\(name): \(entry.title) came under several ids")
        }
        #expect(try await client.call(Notifier.Stats()).dead == 0)
        await client.close()
    }
}
