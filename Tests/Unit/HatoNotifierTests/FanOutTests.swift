import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import Testing

@testable import HatoNotifier

/// What triggers hold is bounded, whatever they match and however many recipients they have.
@Suite(.timeLimit(.minutes(10))) struct FanOutTests {
    private let channel = ScriptedChannel()
    private let users = (10..<40).map { "u\($0)" }

    /// With transactions of at most 5 deliveries.
    private func started(
        _ change: (inout NotifierConfiguration) -> Void = { _ in }
    ) async throws -> (notifier: TestNotifier, store: MemoryStore) {
        let store = try MemoryStore()
        let notifier = try await TestNotifier.start(store: store, channels: [channel]) {
            $0.limits.triggerBytesMax = 16 * 5 * TriggerBudget.bytesPerDelivery
            change(&$0)
        }
        notifier.messages.setNode(
            "/chats/c1/members", .object(users.reduce(into: JSONObject()) { $0[$1] = true }))
        for user in users { try await notifier.addDevice(of: user, at: "http://127.0.0.1:1/\(user)") }
        return (notifier, store)
    }

    private func entry(_ id: String, in chat: String = "c1") -> Messages.Change.Entry {
        var entry = Messages.Change.Entry(path: "/chats/\(chat)/messages/\(id)", type: .created)
        entry.pattern = "/chats/{chat}/messages/{id}"
        entry.params = ["chat": chat, "id": id]
        entry.before = .null
        entry.after = ["senderName": "マスオ", "text": .string(id)]
        entry.uid = "u10"
        return entry
    }

    /// The commits that accepted deliveries, with those of each.
    private func accepted(in store: MemoryStore) async throws -> [UInt64: [DeliveryRecord]] {
        let deliveries = try await store.read { snapshot in
            try snapshot.rows(RecordKey(.delivery)).compactMap { row in
                try snapshot.record(DeliveryRecord.self, row.key)
            }
        }
        return Dictionary(grouping: deliveries, by: \.sequenceVersion)
    }

    @Test func manyMatchesOfManyTriggersAreWrittenInBoundedTransactionsAndEachOnce() async throws {
        let (notifier, store) = try await started()
        for trigger in ["a", "b", "c"] { try await notifier.setTrigger(trigger, title: trigger) }
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let version = notifier.messages.commit { _ in (0..<10).map { entry("m\($0)") } }
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        try await eventually("all are delivered") { try await notifier.stats.pending == 0 }
        let commits = try await accepted(in: store)
        #expect(try #require(commits.values.map(\.count).max()) <= 5)
        var sent: [String: Int] = [:]
        for delivery in channel.deliveries {
            let content = delivery.content
            sent["\(content.text.title ?? "") \(content.text.body ?? "") \(content.uid)", default: 0] += 1
        }
        // All members but the author, once for each trigger and message.
        #expect(sent.count == 3 * 10 * 29 && sent.values.allSatisfy { $0 == 1 })
        #expect(try await store.read { try $0.count(.notification) } == 30)
        for trigger in ["a", "b", "c"] {
            let order = channel.deliveries.filter { $0.content.uid == "u20" && $0.content.text.title == trigger }
            #expect(order.compactMap(\.content.text.body) == (0..<10).map { "m\($0)" })
        }
        await notifier.stop()
    }

    @Test func aTriggerWithManyRecipientsDoesNotHoldUpAnother() async throws {
        // All ten changes of the writer are held together.
        let (notifier, store) = try await started {
            $0.limits.triggerBytesMax = 16 * 64 * TriggerBudget.bytesPerDelivery
        }
        try await notifier.setTrigger("many", title: "many")
        try await notifier.setTrigger("one", recipients: .init(uids: ["u39"]), title: "one")
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        let version = notifier.messages.commit { _ in (0..<10).map { entry("m\($0)") } }
        try await eventually("the cursor is there") {
            try await notifier.stats.cursors.first?.version == Int(version)
        }
        let notifications = try await store.read { snapshot in
            try snapshot.rows(RecordKey(.notification)).compactMap { row in
                try snapshot.record(NotificationRecord.self, row.key)
            }
        }
        let one = Set(notifications.filter { $0.trigger == "one" }.map(\.id))
        #expect(one.count == 10)
        let order = try await accepted(in: store).sorted { $0.key < $1.key }.map(\.value)
        let last = try #require(order.lastIndex { $0.contains { one.contains($0.notification) } })
        let before = order[..<last].flatMap(\.self).count { !one.contains($0.notification) }
        // In each transaction of 64 it has its turn beside the other, which has 290 deliveries.
        #expect(before < 100)
        await notifier.stop()
    }

    /// What was accepted of a change is known, down to the recipient, when its row is read again.
    @Test func afterAnEndInTheMiddleNothingIsLostOrSentTwice() async throws {
        let gate = Gate()
        let slow = ScriptedChannel(gate: gate)
        let store = try MemoryStore()
        let notifier = try await TestNotifier.start(store: store, channels: [slow]) {
            $0.limits.triggerBytesMax = 16 * 5 * TriggerBudget.bytesPerDelivery
        }
        notifier.messages.setNode(
            "/chats/c1/members", .object(users.reduce(into: JSONObject()) { $0[$1] = true }))
        for user in users { try await notifier.addDevice(of: user, at: "http://127.0.0.1:1/\(user)") }
        try await notifier.setTrigger()
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        // Behind the first part the connection ends, and what was held of the changes with it.
        let isCut = Atomic(false)
        let observation = store.observeCommits { group in
            for commit in group.commits {
                let events = (try? RecordCodec.decode([OutboxEvent].self, commit.record, key: [])) ?? []
                guard events.contains(where: { $0.trigger != nil }) else { continue }
                if !isCut.exchange(true, ordering: .relaxed) { notifier.messages.disconnect() }
            }
        }
        notifier.messages.commit { _ in [entry("m0"), entry("m1")] }
        try await eventually("all is accepted") { try await notifier.stats.cursors.first?.version == 1 }
        observation.cancel()
        #expect(notifier.messages.followCount >= 3)
        gate.open()
        try await eventually("all are delivered") { try await notifier.stats.pending == 0 }
        let sent = slow.deliveries.map { "\($0.content.text.body ?? "") \($0.content.uid)" }
        #expect(sent.count == 58 && Set(sent).count == 58)
        #expect(try await store.read { try $0.count(.notification) } == 2)
        await notifier.stop()
    }

    @Test func usersWhoComeAndGoBetweenPartsChangeNothingForTheOthers() async throws {
        let clock = TestClock()
        let outbox = try await Outbox.test(MemoryStore(), clock)
        for uid in ["a", "b", "c", "d", "e"] { try await outbox.addDevice("d-\(uid)", of: uid) }
        let cursor = CursorRecord(version: 1, epoch: "e")
        try await outbox.change { $0.writes.put(CursorRecord.key("default"), cursor) }
        func recipients(_ uids: [String]) async throws -> RecipientList {
            try await outbox.store.read { try Self.list(of: uids, in: $0, countMax: 100) }
        }
        func accept(_ part: RecipientPart) async throws -> AcceptedNotification {
            var new = outbox.notification("x", key: "firing")
            new.recipients = .part(part)
            let rows = ChangeRows(outbox: outbox, database: .default)
            return try #require(try await rows.accept([new], of: []).notifications.first)
        }
        let first = try await accept(recipients(["b", "c", "d", "e"]).part(after: nil, without: nil, count: 2))
        #expect(first.recipients == 2)
        // The process ends here, and reads the recipients again: a has come, b has gone.
        let again = try await recipients(["a", "c", "d", "e"])
        let repeated = try await accept(again.part(after: nil, without: "d", count: 2))
        #expect(repeated.recipients == 0 && repeated.notification == first.notification)
        let last = try await accept(again.part(after: "c", without: "d", count: 2))
        #expect(last.recipients == 1)
        #expect(try await accept(again.part(after: nil, without: "d", count: 9)).isRepetition)
        let deliveries = try await outbox.status(of: try #require(first.notification))?.deliveries
        #expect(deliveries?.map(\.uid) == ["b", "c", "e"] && outbox.pending == 3)
        #expect(Set(deliveries?.map(\.delivery) ?? []).count == 3)
    }

    @Test func devicesOfOneUserAreNotParted() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        for index in 0..<6 { try await outbox.addDevice("d\(index)", of: index < 4 ? "a" : "b") }
        let list = try await outbox.store.read { try Self.list(of: ["b", "a", "b"], in: $0, countMax: 5) }
        let first = list.part(after: nil, without: nil, count: 1)
        #expect(first.recipients.map(\.uid) == ["a", "a", "a", "a"] && first.total == 5 && !first.isLast)
        let second = list.part(after: "a", without: nil, count: 1)
        #expect(second.recipients.map(\.uid) == ["b"] && second.isLast && second.leftOut == 1)
    }

    private static func list(
        of uids: [String], in snapshot: some StoreReading, countMax: Int, bytesMax: Int = 1 << 20
    ) throws -> RecipientList {
        var list = RecipientList()
        try list.add(uids, in: snapshot, .init(countMax: countMax, bytesMax: bytesMax))
        list.sort()
        return list
    }

    // MARK: Budget

    @Test func bytesAreGivenInTheOrderInWhichTheyWereAskedFor() async throws {
        let budget = ByteBudget(10)
        var first: ByteBudget.Reservation? = try await budget.reserve(8)
        let (order, came) = AsyncStream.makeStream(of: Int.self)
        var large: Task<ByteBudget.Reservation, any Error>? = Task {
            let held = try await budget.reserve(1_000)
            came.yield(1)
            return held
        }
        try await eventually("it waits") { budget.waitingCount == 1 }
        let small = Task {
            let held = try await budget.reserve(1)
            came.yield(2)
            return held
        }
        try await eventually("both wait") { budget.waitingCount == 2 }
        withExtendedLifetime(first) {}
        first = nil
        var arrivals = order.makeAsyncIterator()
        #expect(await arrivals.next() == 1)
        #expect(budget.waitingCount == 1 && budget.free == 0)
        // The task holds them for as long as it is referred to.
        _ = try await large?.value
        large = nil
        #expect(await arrivals.next() == 2)
        _ = try await small.value
    }

    @Test func cancelledReservationWaitsForNoBytesAndHoldsNone() async throws {
        let budget = ByteBudget(10)
        let held = try await budget.reserve(10)
        let waiting = Task { _ = try await budget.reserve(5) }
        try await eventually("it waits") { budget.waitingCount == 1 }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(budget.waitingCount == 0)
        withExtendedLifetime(held) {}
    }

    @Test func feedsPauseWhileAllOfThemTogetherHoldTooMuch() async throws {
        var limits = NotifierLimits()
        func commit(_ version: UInt64) -> FeedCommit { .init(version: version, epoch: "", time: 0, changes: []) }
        limits.triggerBytesMax = 8 * 5 * commit(0).memoryBytes
        let budget = TriggerBudget(limits)
        // Together five commits, each feed a quarter of them.
        let buffers = (0..<6).map { _ in CommitBuffer(limits, budget) }
        let feeds = buffers.map { buffer in
            Task {
                for version in UInt64(1)...9 {
                    try await buffer.append(commit(version))
                }
                buffer.end(.success(()))
            }
        }
        try await eventually("they pause") { budget.changes.free == 0 && budget.changes.waitingCount > 0 }
        let versions = try await withThrowingTaskGroup(of: [UInt64].self) { group in
            for buffer in buffers {
                group.addTask {
                    var versions: [UInt64] = []
                    while let commits = try await buffer.takeAll() {
                        #expect(commits.count <= 2)
                        versions += commits.map(\.commit.version)
                        buffer.finished(commits)
                    }
                    return versions
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(versions == Array(repeating: Array(1...9), count: buffers.count))
        for feed in feeds { try await feed.value }
        #expect(budget.changes.free == budget.changes.bytes)
    }

    @Test func listsAreKeptUpToTheirBytesAndUsedOnlyByWhatCameBeforeTheyWereRead() async throws {
        let outbox = try await Outbox.test(MemoryStore(), TestClock())
        try await outbox.addDevice("d1", of: "u1")
        let list = try await outbox.store.read { try Self.list(of: ["u1"], in: $0, countMax: 9) }
        let lists = RecipientLists(bytesMax: 4_000)
        let database = try DatabaseName("default")
        func key(_ uid: String) -> RecipientLists.Key { .init(database: database, source: .user(uid)) }
        let before: UInt64 = 7
        lists.keep(list, key("u1"), readAt: before + 1)
        #expect(lists.list(key("u1"), after: before) != nil)
        #expect(lists.list(key("u1"), after: before + 1) == nil)
        for index in 0..<50 {
            lists.keep(list, key("\(index)"), readAt: before + 1)
            #expect(lists.bytes <= 4_000)
        }
        #expect(lists.list(key("49"), after: before) != nil && lists.list(key("u1"), after: before) == nil)
    }

    /// Lists without devices, and lists that are found under long names, are no way around the bound.
    @Test func namesOfListsCountTowardsTheirBytes() throws {
        let lists = RecipientLists(bytesMax: 100_000)
        let database = try DatabaseName("default")
        let keys = try (0..<1_000).map { index in
            let path = try TreePath("/" + String(repeating: "x", count: 700) + "\(index)")
            return RecipientLists.Key(database: database, source: .keys(of: path))
        }
        for key in keys { lists.keep(RecipientList(), key, readAt: 1) }
        #expect(keys.count { lists.list($0, after: 0) != nil } <= 100_000 / 700)
    }

    @Test(arguments: [1 << 20, 64 << 20, 1 << 40]) func allPartsTogetherStayWithinTheSetting(_ bytes: Int) async throws
    {
        var limits = NotifierLimits()
        limits.triggerBytesMax = bytes
        let budget = TriggerBudget(limits)
        let lists = budget.lists.bytesMax + budget.parted.bytes
        let parts = [budget.changes.bytes + budget.loaded.bytes, budget.transactions.bytes, budget.reads.bytes, lists]
        #expect(parts.allSatisfy { $0 <= bytes / 4 })
        // A response takes twice its bytes while it comes, once more as a text, and what is made of it.
        #expect(budget.keysTextMax * TriggerBudget.bytesPerLineByte + budget.listMax <= budget.recipientsRead)
        #expect(budget.node.textBytesMax * 3 + budget.node.valueBytesMax <= budget.reads.bytes)
    }
}
