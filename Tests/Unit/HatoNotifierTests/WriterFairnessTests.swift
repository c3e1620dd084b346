import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// The changes of one writer delay no notifications of the others.
@Suite(.timeLimit(.minutes(10))) struct WriterFairnessTests {
    private let channel = ScriptedChannel()

    /// Its recipients are still being read, and its changes are more than may be held.
    @Test func aWriterWithMoreChangesThanAreHeldDelaysNoOther() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.changesPerBatchMax = 16 }
        let users = (1_000..<3_500).map { "user\($0)" }
        notifier.messages.setNode("/chats/c1/members", .object(users.reduce(into: JSONObject()) { $0[$1] = true }))
        notifier.messages.setNode("/chats/c2/members", ["user1000": true])
        // The second one is behind the first page.
        for uid in ["user1000", "user3000"] { try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/\(uid)") }
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let reads = notifier.budget.longReads
        var held: ByteBudget.Reservation? = try await reads.reserve(reads.bytes)
        for index in 1...200 { notifier.messages.push("\(index)", in: "c1", by: "many") }
        try await eventually("its recipients are wanted") { reads.waitingCount == 1 }
        for text in ["a", "b"] {
            notifier.messages.push(text, in: "c2", by: "one")
            try await eventually("the other writer's") { channel.deliveries.last?.content.text.body == text }
        }
        #expect(channel.deliveries.count == 2)
        #expect(try await notifier.stats.cursors.first?.version == 0)
        withExtendedLifetime(held) {}
        held = nil
        try await eventually("all are delivered") { channel.deliveries.count == 402 }
        for uid in ["user1000", "user3000"] {
            let mine = channel.deliveries.dropFirst(2).filter { $0.content.uid == uid }
            #expect(mine.compactMap(\.content.text.body) == (1...200).map(String.init))
        }
        try await eventually("all is accepted") { try await notifier.stats.cursors.first?.version == 202 }
        await notifier.stop()
    }

    /// No more of its changes are held than the one whose recipients are being read.
    @Test func aChangeThatComesWhileItsWriterWaitsIsHandledLater() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.changesPerBatchMax = 16 }
        let users = (1_000..<3_500).map { "user\($0)" }
        notifier.messages.setNode("/chats/c1/members", .object(users.reduce(into: JSONObject()) { $0[$1] = true }))
        try await notifier.addDevice(of: "user3000", at: "http://127.0.0.1:1/u")
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let reads = notifier.budget.longReads
        var held: ByteBudget.Reservation? = try await reads.reserve(reads.bytes)
        for count in 1...2 {
            notifier.messages.push("\(count)", in: "c1", by: "one")
            try await eventually("it waits") { try await notifier.store.read { try $0.count(.change) } == count }
            try await eventually("its recipients are wanted") { reads.waitingCount == 1 }
        }
        withExtendedLifetime(held) {}
        held = nil
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        #expect(channel.deliveries.map(\.content.text.body) == ["1", "2"])
        await notifier.stop()
    }

    /// Its trigger is gone: nothing is sent, and nothing stays.
    @Test func changesThatWaitGoWithTheLastTriggerOfTheirDatabase() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        notifier.messages.setNode("/chats/c1/members", ["u2": true])
        notifier.messages.fail(with: RPCError.unavailable(reason: "down", "down"))
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        notifier.messages.push("1")
        try await eventually("it waits") { try await notifier.store.read { try $0.count(.change) } == 1 }
        _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "chat-message"))
        try await eventually("its row goes") { try await notifier.store.read { try $0.count(.change) } == 0 }
        #expect(channel.deliveries.isEmpty)
        await notifier.stop()
    }
}
