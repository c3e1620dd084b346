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

    @Test func keysThatFitIntoAPageAreReadAtOnce() async throws {
        let found = try await keys(of: members(users.prefix(999)), textBytesMax: 1 << 20)
        #expect(found.parts == [Array(users.prefix(999))] && found.reads == 1)
        #expect(try await keys(of: ["a", .null, "c"], textBytesMax: 1 << 20).parts == [["0", "2"]])
        #expect(try await keys(of: "leaf", textBytesMax: 1 << 20).parts == [[]])
        #expect(try await keys(of: .null, textBytesMax: 1 << 20).parts == [[]])
    }

    @Test func moreKeysAreReadPageByPageEachOnce() async throws {
        let found = try await keys(of: members(users), textBytesMax: 40_000)
        #expect(found.parts.flatMap(\.self) == users && found.reads == 3)
    }

    /// Whatever is below them.
    @Test func valuesAreNotRead() async throws {
        let text = JSONValue.string(String(repeating: "x", count: 20_000))
        let found = try await keys(of: members(users.prefix(300), ["about": text]), textBytesMax: 12_000)
        #expect(found.parts.flatMap(\.self) == Array(users.prefix(300)) && found.reads == 1)
    }

    /// The longest ones, whose characters are all escaped, and short ones behind them.
    @Test(arguments: [1, 2, 5])
    func pagesOfLongKeysAreSmaller(fitting: Int) async throws {
        let long = (10..<40).map { String(repeating: "\"", count: TreeLimits.keyBytesMax - 2) + "\($0)" }
        let textBytesMax = fitting * KeyReading.textBytesPerKey + 128
        let found = try await keys(of: members(long + users), textBytesMax: textBytesMax) { $0.uidBytesMax = 1_024 }
        #expect(found.parts.flatMap(\.self) == long + users)
        #expect(found.parts.prefix { $0.count <= fitting }.flatMap(\.self).starts(with: long.dropLast(fitting)))
    }

    @Test func noMoreKeysAreReadThanRecipientsMayHave() async throws {
        let found = try await keys(of: members(users), textBytesMax: 40_000) { $0.recipientKeysMax = 1_100 }
        #expect(found.parts.flatMap(\.self) == Array(users.prefix(1_100)))
        let long = String(repeating: "k", count: 600)
        #expect(try await keys(of: members([long, "u1"]), textBytesMax: 1 << 20).parts == [["u1"]])
        // Those that can be no uids count, too.
        let unusable = members((0..<5).map { long + "\($0)" } + ["u1"])
        #expect(try await keys(of: unusable, textBytesMax: 1 << 20) { $0.recipientKeysMax = 5 }.parts == [[]])
    }

    /// Of 5,000 keys those of two users are looked for, and few beside them are read.
    @Test(arguments: ["user", "日本"]) func keysOfUsersWithoutDevicesAreNotRead(_ name: String) async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        notifier.messages.setNode(path, members((1_000..<6_000).map { name + "\($0)" }))
        for uid in [name + "3333", name + "5555", "9", "somebody", "zoe"] {
            try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/u")
        }
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        notifier.messages.push("x", by: "author")
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        #expect(Set(channel.deliveries.map(\.content.uid)) == [name + "3333", name + "5555"])
        #expect(notifier.messages.reads.count <= 5)
        await notifier.stop()
    }

    /// Whatever their names are, the next user is none that comes later, and found where it is said that there is none.
    @Test(arguments: 1...40 as ClosedRange<UInt64>) func noUserIsPassedOver(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        func name() -> String {
            let letters = ["a", "b", "1", "2", "-", "~", "é", "\u{FFFD}", "😀", "/", "["]
            return (0..<Int.random(in: 1...3, using: &random)).compactMap { _ in letters.randomElement(using: &random) }
                .joined()
        }
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        let users = Set((0..<Int.random(in: 0...40, using: &random)).map { _ in name() })
        for user in users {
            for device in 0..<Int.random(in: 1...3, using: &random) {
                try await outbox.addDevice("\(user)-\(device)", of: user)
            }
        }
        let legal = users.filter { TreeKey.problem($0) == nil }
        for _ in 0..<50 {
            let (key, asked) = (name(), (0..<20).map { _ in name() })
            try await outbox.store.read { snapshot in
                let behind = legal.filter { KeyOrder.precedes(key, $0) }
                switch try snapshot.userAhead(of: key, passed: 0).user {
                case .none: #expect(behind.isEmpty, "\(key), seed \(seed)")
                case .uid(let uid):
                    #expect(behind.contains(uid), "\(key), seed \(seed)")
                    #expect(!behind.contains { KeyOrder.precedes($0, uid) }, "\(key), seed \(seed)")
                case .unknown: break
                }
                var found: [String] = []
                _ = try snapshot.forEachDevice(of: asked) { uid, _ in found.append(uid) }
                let expected = try Set(asked).flatMap { uid in
                    try snapshot.deviceKeys(of: uid).map { _ in uid }
                }
                #expect(found.sorted() == expected.sorted(), "seed \(seed)")
            }
        }
    }

    /// A search for each of them would take most of the time.
    @Test func devicesOfManyUsersAreFoundBetweenThoseOfOthers() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        let users = (100..<400).map { "u\($0)" }
        for user in users {
            for device in 0..<3 { try await outbox.addDevice("\(user)-\(device)", of: user) }
        }
        let asked = users.filter { $0.hasSuffix("7") } + ["u", "u2", "v"] + (0..<1_000).map { "u3999\($0)" }
        try await outbox.store.read { snapshot in
            var found: [String] = []
            let passed = try snapshot.forEachDevice(of: asked) { uid, device in found.append(uid) }
            #expect(found == users.filter { $0.hasSuffix("7") }.flatMap { [$0, $0, $0] })
            #expect(passed < 30 * 20)
        }
    }

    // MARK: Beside others

    /// Its recipients are still being read.
    @Test func aTriggerThatWaitsForItsRecipientsHoldsUpNoOther() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        notifier.messages.setNode(path, ["u2": true])
        let gate = Gate()
        notifier.messages.holdReads(of: path, until: gate)
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        try await notifier.setTrigger("many", title: "many")
        try await notifier.setTrigger("one", recipients: .init(uids: ["u2"]), title: "one")
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        for text in ["1", "2", "3"] { notifier.messages.push(text) }
        try await eventually("those of the other") { channel.titles == ["one", "one", "one"] }
        let version = notifier.messages.push("4")
        try await eventually("what comes meanwhile") { channel.titles.count == 4 }
        #expect(try await notifier.stats.cursors.first?.version == 0)
        gate.open()
        try await eventually("all") { channel.titles.count { $0 == "many" } == 4 }
        let bodies = channel.deliveries.filter { $0.content.text.title == "many" }.map(\.content.text.body)
        #expect(bodies == ["1", "2", "3", "4"])
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        await notifier.stop()
    }

    @Test func listsOfManyPagesHoldUpNoShortOnes() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        notifier.messages.setNode(path, members(users))
        notifier.messages.setNode("/chats/c2/members", ["user1000": true])
        for uid in users[...2] + users.suffix(2) {
            try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/\(uid)")
        }
        try await notifier.setTrigger("many", recipients: .init(uidsAt: path), title: "many")
        try await notifier.setTrigger("few", recipients: .init(uidsAt: "/chats/c2/members"), title: "few")
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let reads = notifier.budget.longReads
        var held: ByteBudget.Reservation? = try await reads.reserve(reads.bytes)
        for count in 1...3 {
            notifier.messages.push("x", by: "author")
            try await eventually("the short list") { channel.titles == Array(repeating: "few", count: count) }
        }
        #expect(reads.waitingCount == 1)
        withExtendedLifetime(held) {}
        held = nil
        try await eventually("the long one, too") { channel.titles.count == 3 + 3 * 5 }
        #expect(reads.free == reads.bytes)
        await notifier.stop()
    }

    /// The child that does not fit is one of four users, in a small room or in a large one.
    @Test(
        arguments: ["u1", "u3", "u4"].flatMap { large in
            [("", 0), ("x", 0), ("", 2_000)].map { (large, $0.0, $0.1) }
        })
    func memberWithALargeValueDelaysNoNotification(large: String, child: String, others: Int) async throws {
        let notifier = try await TestNotifier.start(channels: [channel]) { $0.limits.triggerBytesMax = 1 << 20 }
        var node = JSONObject()
        let text = JSONValue.string(String(repeating: "x", count: 100_000))
        for uid in ["u1", "u2", "u3", "u4"] { node[uid] = true }
        let value: JSONValue = child.isEmpty ? text : [child: text]
        node[large] = value
        notifier.messages.setNode("\(path)/\(large)", value)
        for index in 0..<others { node["v\(index)"] = true }
        notifier.messages.setNode(path, .object(node))
        for uid in ["u1", "u2", "u3", "u4"] {
            try await notifier.addDevice(of: uid, at: "http://127.0.0.1:1/\(uid)")
        }
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let version = notifier.messages.push("x", by: "author")
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        try await eventually("all are delivered") { try await notifier.stats.pending == 0 }
        #expect(channel.deliveries.map(\.content.uid).sorted() == ["u1", "u2", "u3", "u4"])
        #expect(notifier.budget.reads.free == notifier.budget.reads.bytes)
        await notifier.stop()
    }

    /// One of two places stays for the lists of other databases.
    @Test func aDatabaseReadsOneLongListAtATime() async throws {
        let notifier = try await TestNotifier.start(channels: [channel])
        let gate = Gate()
        for chat in ["c1", "c2"] {
            notifier.messages.setNode("/chats/\(chat)/members", members(users))
        }
        // Behind the first page: else the list would end there.
        try await notifier.addDevice(of: users[2_000], at: "http://127.0.0.1:1/u")
        try await notifier.setTrigger("a", recipients: .init(uidsAt: "/chats/c1/members"))
        try await notifier.setTrigger("b", recipients: .init(uidsAt: "/chats/c2/members"))
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let reads = notifier.budget.longReads
        var held: ByteBudget.Reservation? = try await reads.reserve(reads.bytes)
        notifier.messages.push("x", by: "author")
        try await eventually("both were too long for one request") { notifier.messages.reads.count == 2 }
        try await eventually("one waits") { reads.waitingCount == 1 }
        for chat in ["c1", "c2"] { notifier.messages.holdReads(of: "/chats/\(chat)/members", until: gate) }
        withExtendedLifetime(held) {}
        held = nil
        try await eventually("its place is taken") { reads.free == reads.bytes / 2 }
        gate.open()
        try await eventually("both are delivered") { channel.deliveries.count == 2 }
        try await eventually("all is given back") { reads.free == reads.bytes }
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
