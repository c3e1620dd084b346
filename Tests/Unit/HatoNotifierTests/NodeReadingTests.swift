import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// What is read of messages is bounded, however large the nodes are.
@Suite(.timeLimit(.minutes(10))) struct NodeReadingTests {
    private let channel = ScriptedChannel()
    private let path = "/chats/c1/members"

    private func keys(
        of node: JSONValue, textBytesMax: Int, _ change: (inout NotifierLimits) -> Void = { _ in }
    ) async throws -> (parts: [[String]], reads: Int) {
        let fake = try await FakeMessages.start()
        fake.setNode(path, node)
        let messages = MessagesClient(
            RPCClientConfiguration(host: "127.0.0.1", port: fake.port).with(credential: TestKeys.administrator))
        var limits = NotifierLimits()
        change(&limits)
        var reading = KeyReading(messages, .default, try TreePath(path), limits, textBytesMax: textBytesMax)
        var parts: [[String]] = []
        let result: Result<Void, any Error>
        do {
            while let part = try await reading.next() { parts.append(part) }
            result = .success(())
        } catch { result = .failure(error) }
        await messages.close()
        await fake.stop()
        try result.get()
        return (parts, fake.reads.count)
    }

    private func members(_ names: some Sequence<String>, _ value: JSONValue = true) -> JSONValue {
        .object(names.reduce(into: JSONObject()) { $0[$1] = value })
    }

    private let users = (1_000..<3_500).map { "user\($0)" }

    @Test func keysThatFitAreReadAtOnce() async throws {
        let found = try await keys(of: members(users), textBytesMax: 1 << 20)
        #expect(found.parts == [users] && found.reads == 1)
        #expect(try await keys(of: ["a", .null, "c"], textBytesMax: 1 << 20).parts == [["0", "2"]])
        #expect(try await keys(of: "leaf", textBytesMax: 1 << 20).parts == [[]])
        #expect(try await keys(of: .null, textBytesMax: 1 << 20).parts == [[]])
    }

    @Test func moreKeysAreReadPageByPageEachOnce() async throws {
        let found = try await keys(of: members(users), textBytesMax: 40_000)
        #expect(found.parts.count > 2 && found.parts.flatMap(\.self) == users)
        // One that is refused, then pages of a thousand.
        #expect(found.reads <= 5)
    }

    @Test func aChildThatDoesNotFitAloneIsAnError() async throws {
        let node = members(users.prefix(60), ["x": .string(String(repeating: "x", count: 2_000))])
        await #expect { try await keys(of: node, textBytesMax: 400) } throws: {
            ($0 as? RPCError)?.reason == "too_big"
        }
    }

    @Test func largeChildrenAreReadInSmallerPages() async throws {
        let text = JSONValue.string(String(repeating: "x", count: 900))
        let found = try await keys(of: members(users.prefix(300), ["about": text]), textBytesMax: 4_000)
        #expect(found.parts.flatMap(\.self) == Array(users.prefix(300)))
    }

    @Test func noMoreKeysAreReadThanRecipientsMayHave() async throws {
        let found = try await keys(of: members(users), textBytesMax: 40_000) { $0.recipientKeysMax = 1_100 }
        #expect(found.parts.flatMap(\.self) == Array(users.prefix(1_100)))
        let long = String(repeating: "k", count: 200)
        #expect(try await keys(of: members([long, "u1"]), textBytesMax: 1 << 20).parts == [["u1"]])
    }

    /// The child that does not fit is the third of four users: what was read before it stays.
    @Test func aTriggerNotifiesThoseWhoseKeysCouldBeRead() async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.triggerBytesMax = 1 << 20 }
        var node = JSONObject()
        for uid in ["u1", "u2", "u4"] { node[uid] = true }
        node["u3"] = ["x": .string(String(repeating: "x", count: 100_000))]
        for index in 0..<2_000 { node["v\(index)"] = true }
        notifier.messages.setNode(path, .object(node))
        for uid in ["u1", "u2", "u4"] { try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/\(uid)") }
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let version = notifier.messages.push("x", by: "author")
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        try await eventually("all are delivered") { try await notifier.stats.pending == 0 }
        #expect(channel.deliveries.map(\.content.uid).sorted() == ["u1", "u2"])
        await notifier.stop()
    }

    /// A node that is larger than a trigger may read is as one that cannot be read: the trigger goes without it.
    @Test(arguments: [200_000, 20_000]) func aNodeThatIsTooLargeIsNotRead(_ count: Int) async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.triggerBytesMax = 1 << 20 }
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger(recipients: .init(uids: ["u2"]), title: "{chat}")
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        // As many bytes of text or, with fewer, of values.
        let large: JSONValue =
            count > 100_000
            ? ["text": "hello", "more": .string(String(repeating: "x", count: count))]
            : ["text": "hello", "more": .array(Array(repeating: [], count: count / 4))]
        notifier.messages.setNode("/chats/c1/messages/m", large)
        notifier.messages.setNode("/chats/c1/messages/n", ["text": "small"])
        for id in ["m", "n"] {
            notifier.messages.commit { _ in
                var entry = Messages.Change.Entry(path: "/chats/c1/messages/\(id)", type: .created)
                entry.pattern = "/chats/{chat}/messages/{id}"
                entry.params = ["chat": "c1", "id": id]
                entry.truncated = true
                return [entry]
            }
        }
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        #expect(channel.deliveries.map { $0.content.text.body ?? "" } == ["", "small"])
        #expect(try await notifier.stats.incomplete == 1)
        await notifier.stop()
    }

    /// Readings wait for their reservation before they start, and hold it until the list is made.
    @Test func readingsWaitForBytesBeforeTheyStart() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        notifier.messages.setNode(path, ["u2": true])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let reads = notifier.budget.reads
        var held: ByteBudget.Reservation? = try await reads.reserve(reads.bytes)
        notifier.messages.push("x")
        try await eventually("it waits") { reads.waitingCount == 1 }
        #expect(notifier.messages.reads.isEmpty)
        withExtendedLifetime(held) {}
        held = nil
        try await eventually("delivered") { channel.deliveries.count == 1 }
        #expect(notifier.messages.reads == [path] && reads.free == reads.bytes)
        await notifier.stop()
    }
}
