import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Synchronization
import Testing

@testable import HatoNotifier

/// What the turns of one database accept.
@Suite struct ChangeHandlerTests {
    private let users = (10..<20).map { "u\($0)" }

    /// Finds no recipients anywhere, once its gate is open, and remembers where they were looked for.
    private final class Reading: Sendable {
        let gate = ByteBudget(1_000)
        private let state = Mutex((needs: [FeedReadings.Need: Int](), ended: 0))

        func begin(_ need: FeedReadings.Need, _ time: UInt64) async throws -> FeedReadings.Found {
            state.withLock { $0.needs[need, default: 0] += 1 }
            _ = try await gate.reserve(1)
            return .init(value: .recipients(RecipientList()), time: time, reservations: [])
        }

        func end() { state.withLock { $0.ended += 1 } }
        var ended: Int { state.withLock { $0.ended } }
        func count(_ path: String) throws -> Int {
            let path = try TreePath(path)
            return state.withLock { $0.needs[.recipients(path)] ?? 0 }
        }
    }

    /// A database with changes that wait, and what handles them; transactions have at most five deliveries.
    private struct Changes {
        let outbox: Outbox
        let source: TriggerSource
        let readings: FeedReadings
        let messages: MessagesClient
        let budget: TriggerBudget
        let trigger: FeedTrigger
        var backlog = ChangeBacklog()
        var handler: ChangeHandler
        private var intake: FeedIntake
        private var version: UInt64 = 0

        init(
            of users: [String], collapseKey: String? = nil, reading: Reading? = nil,
            _ change: (inout NotifierLimits) -> Void = { _ in }
        ) async throws {
            outbox = try await Outbox.test(MemoryStore(), TestClock()) {
                $0.limits.triggerBytesMax = 16 * 5 * TriggerBudget.bytesPerDelivery
                change(&$0.limits)
            }
            for user in users { try await outbox.addDevice(user, of: user) }
            messages = MessagesClient(RPCClientConfiguration(host: "127.0.0.1", port: 1))
            budget = TriggerBudget(outbox.limits)
            let source = TriggerSource(
                database: .default, messages: messages, outbox: outbox, budget: budget,
                notices: ThrottledNotices(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
            self.source = source
            var trigger = Notifier.Triggers.Set(
                id: "t", pattern: try FeedPattern("/a/{x}"), recipients: .init(uids: users),
                notification: .init(title: "new", body: "{after}")
            ).trigger
            trigger.options = .init(collapseKey: collapseKey)
            if reading != nil { trigger.recipients = .init(uidsAt: "/members/{x}") }
            self.trigger = FeedTrigger(
                compiled: try CompiledTrigger(trigger, limits: NotifierLimits()),
                record: TriggerRecord(trigger: trigger, startsAfter: 0, epoch: "e"))
            let cursor = CursorRecord(version: 0, epoch: "e")
            try await outbox.change { $0.writes.put(CursorRecord.key("default"), cursor) }
            readings = FeedReadings(ended: { reading?.end() }) { [outbox] in
                if let reading { return try await reading.begin($0, outbox.store.version) }
                return try await source.read($0)
            }
            intake = FeedIntake(source, [self.trigger], backlog, cursor)
            handler = ChangeHandler(source, readings, [self.trigger], backlog)
        }

        /// One commit of a writer.
        mutating func came(_ count: Int = 1, by writer: String, bytes: Int = 0) async throws {
            try await came(by: Array(repeating: writer, count: count), bytes: bytes)
        }

        /// One commit of several.
        mutating func came(by writers: [String], bytes: Int = 0) async throws {
            version += 1
            let changes = writers.enumerated().map { index, writer in
                FeedChange(
                    pattern: "/a/{x}", parameters: ["x": "\(index)"], path: "/a/\(version)-\(index)", type: .created,
                    before: .null,
                    after: .string("\(writer) \(version)-\(index)" + String(repeating: "x", count: bytes)), uid: writer)
            }
            try await intake.take([FeedCommit(version: version, epoch: "e", time: 0, changes: changes)])
        }

        /// As after a start of the process.
        mutating func beginAgain() async throws {
            backlog = ChangeBacklog()
            backlog.came(try await source.rows.shares(), through: outbox.store.version)
            handler = ChangeHandler(source, readings, [trigger], backlog)
        }

        /// The writers and users of what was accepted, in the order of transactions; those of one are sorted.
        var accepted: [[String]] {
            get async throws {
                let deliveries = try await outbox.store.read { snapshot in
                    try snapshot.rows(RecordKey(.delivery)).compactMap { row -> (UInt64, String)? in
                        guard let delivery = try snapshot.record(DeliveryRecord.self, row.key),
                            let notification = try snapshot.record(
                                NotificationRecord.self, NotificationRecord.key(delivery.notification))
                        else { return nil }
                        return (delivery.sequenceVersion, "\(notification.text.body ?? "") \(delivery.uid)")
                    }
                }
                return Dictionary(grouping: deliveries, by: \.0).sorted { $0.key < $1.key }.map { commit in
                    commit.value.map(\.1).sorted()
                }
            }
        }

        /// In the order in which they were accepted, each with the body of its notification.
        var deliveries: [(record: DeliveryRecord, body: String)] {
            get async throws {
                let deliveries = try await outbox.store.read { snapshot in
                    try snapshot.rows(RecordKey(.delivery)).compactMap {
                        row -> (record: DeliveryRecord, body: String)? in
                        guard let delivery = try snapshot.record(DeliveryRecord.self, row.key) else { return nil }
                        let key = NotificationRecord.key(delivery.notification)
                        return (delivery, try snapshot.record(NotificationRecord.self, key)?.text.body ?? "")
                    }
                }
                return deliveries.sorted {
                    ($0.record.sequenceVersion, $0.record.sequenceIndex)
                        < ($1.record.sequenceVersion, $1.record.sequenceIndex)
                }
            }
        }

        func stop() async {
            await readings.stop()
            await messages.close()
        }
    }

    /// A new recipient can have had a later notification already, unless the list could not be kept.
    @Test(arguments: [true, false])
    func allPartsOfANotificationGoToTheRecipientsOfTheFirst(isKept: Bool) async throws {
        var changes = try await Changes(of: users)
        let (outbox, budget) = (changes.outbox, changes.budget)
        try await outbox.addDevice("u99", of: "u99")
        let full = isKept ? nil : budget.parted.reserveNow(budget.parted.bytes)
        try await changes.came(by: "w")
        #expect(try await changes.handler.turn())
        #expect(isKept == (budget.parted.free > 0 && budget.parted.free < budget.parted.bytes))
        let newer = try await outbox.store.read { [users] snapshot in
            var list = RecipientList()
            try list.add(users + ["u99"], in: snapshot, .init(countMax: 100, bytesMax: 1 << 20))
            list.sort()
            return list
        }
        budget.lists.keep(newer, .init(database: .default, source: .named(by: "t")), readAt: .max)
        var turns = 0
        while try await changes.handler.turn() { turns += 1 }
        #expect(turns < 20 && changes.backlog.rowCount == 0)
        let notified = try await outbox.store.read { snapshot in
            try snapshot.rows(RecordKey(.delivery)).compactMap { try snapshot.record(DeliveryRecord.self, $0.key)?.uid }
        }
        #expect(notified.sorted() == users + (isKept ? [] : ["u99"]))
        withExtendedLifetime(full) {}
        #expect(budget.parted.free == (isKept ? budget.parted.bytes : 0))
        await changes.stop()
    }

    @Test func changesAndTheCursorAreWrittenTogetherOrNotAtAll() async throws {
        let changes = try await Changes(of: users)
        let (outbox, rows) = (changes.outbox, changes.source.rows)
        let (one, two) = (CursorRecord(version: 0, epoch: "e"), CursorRecord(version: 2, epoch: "e"))
        let change = FeedChange(
            pattern: "/a/{x}", parameters: [:], path: "/a/1", type: .created, before: .null, after: true, uid: "w")
        let record = ChangeRecord(change: change, version: 2, epoch: "e", time: 0)
        let version = outbox.store.version
        let kept = try await rows.keep([record, record], moving: CursorMove(from: one, to: two)) { _ in [] }
        #expect(kept.came.map(\.rows) == [2] && outbox.store.version == version + 1)
        await #expect(throws: OutboxRefusal.cursorMoved) {
            try await rows.keep([record], moving: CursorMove(from: one, to: two)) { _ in [] }
        }
        #expect(try await rows.shares() == kept.came && outbox.store.version == version + 1)
        var page = ChangePage(through: version, rowsMax: 9, bytesMax: 1 << 20, triggers: [changes.trigger])
        #expect(try await rows.load(of: change.writer, after: nil, page).changes.isEmpty)
        page.through = kept.sequence
        let done = try await rows.load(of: change.writer, after: nil, page).changes.map(\.row)
        // Whatever is repeated, a row goes once.
        for count in [2, 0] {
            let went = try await rows.accept([outbox.notification("a", to: ["u10"], key: "k")], of: done).went
            #expect(went.reduce(0) { $0 + $1.rows } == count)
        }
        #expect(outbox.pending == 1)
        await changes.stop()
    }

    /// Many small values take more than their text, few large ones as much.
    @Test func whatACommitTakesInMemoryIsCounted() {
        func bytes(_ value: JSONValue) -> Int {
            let change = FeedChange(
                pattern: "/a", parameters: [:], path: "/a", type: .updated, before: .null, after: value, uid: nil)
            return FeedCommit(version: 1, epoch: "e", time: 0, changes: [change]).memoryBytes
        }
        #expect((10_000..<12_000).contains(bytes(.string(String(repeating: "x", count: 10_000)))))
        let many = JSONValue.array(Array(repeating: .number(1), count: 1_000))
        #expect(bytes(many) > 1_000 * MemoryLayout<JSONValue>.size)
        #expect(bytes(.object(["a": many, "b": many])) > 2 * bytes(many) - 2_000)
    }

    // MARK: Writers

    /// Whatever waits before.
    @Test func aWriterWithManyChangesDelaysOthersByATurnOnly() async throws {
        var changes = try await Changes(of: users)
        try await changes.came(100, by: "many")
        for _ in 1...5 { #expect(try await changes.handler.turn()) }
        try await changes.came(by: "one")
        for _ in 1...12 { #expect(try await changes.handler.turn()) }
        let accepted = try await changes.accepted
        #expect(accepted.flatMap(\.self).count { $0.hasPrefix("one") } == users.count)
        #expect(accepted.allSatisfy { $0.count <= 5 })
        // Beside it, the other writer went on.
        #expect(accepted.suffix(12).allSatisfy { $0.contains { $0.hasPrefix("many") } })
        await changes.stop()
    }

    /// More than changes are held of, whether the process goes on or begins again in the middle.
    @Test(arguments: [false, true])
    func changesOfManyWritersAreAcceptedOnceAndInOrder(beginsAgain: Bool) async throws {
        var changes = try await Changes(of: users)
        let writers = (0..<30).map { "w\($0)" }
        for _ in 1...2 { for writer in writers { try await changes.came(2, by: writer) } }
        var turns = 0
        while try await changes.handler.turn() {
            turns += 1
            if beginsAgain, turns.isMultiple(of: 7) { try await changes.beginAgain() }
        }
        #expect(changes.backlog.rowCount == 0 && changes.backlog.byteCount == 0)
        #expect(try await changes.outbox.store.read { try $0.count(.change) } == 0)
        let order = try await changes.accepted.flatMap(\.self)
        #expect(order.count == 30 * 4 * users.count && Set(order).count == order.count)
        for writer in writers {
            let mine = order.filter { $0.hasPrefix("\(writer) ") && $0.hasSuffix(" u15") }
            // The commit and the number in it.
            let places = mine.map { text in text.split { " -".contains($0) }.compactMap { Int($0) } }
            #expect(places.count == 4 && places == places.sorted { ($0[0], $0[1]) < ($1[0], $1[1]) })
        }
        await changes.stop()
    }

    /// Also those of one commit, as long as no writer has more than a turn takes.
    @Test func changesOfSeveralWritersAreAcceptedInTheirOrder() async throws {
        var changes = try await Changes(of: users)
        try await changes.came(by: (0..<20).map { "w\($0)" })
        #expect(try await changes.handler.turn())
        for writer in 20..<30 { try await changes.came(by: "w\(writer)") }
        while try await changes.handler.turn() {}
        let deliveries = try await changes.deliveries
        for user in users {
            let writers = deliveries.filter { $0.record.uid == user }.map { $0.body.prefix { $0 != " " } }
            #expect(writers == (0..<30).map { "w\($0)" })
        }
        await changes.stop()
    }

    /// Also where the process begins again between the two.
    @Test(arguments: [false, true])
    func anOlderChangeReplacesNoNewerOneUnderACollapseKey(beginsAgain: Bool) async throws {
        var changes = try await Changes(of: users, collapseKey: "k")
        let store = changes.outbox.store
        try await changes.came(40, by: "many")
        for _ in 1...5 { #expect(try await changes.handler.turn()) }
        try await changes.came(by: "one")
        func newest() async throws -> Int { try await store.read { try $0.count(.newest) } }
        while try await newest() < users.count { #expect(try await changes.handler.turn()) }
        #expect(try await changes.deliveries.count < 41 * users.count)
        if beginsAgain { try await changes.beginAgain() }
        while try await changes.handler.turn() {}
        let deliveries = try await changes.deliveries
        #expect(deliveries.count == 41 * users.count)
        let waiting = deliveries.filter { $0.record.machine.state == .pending }
        #expect(waiting.map(\.record.uid).sorted() == users && waiting.allSatisfy { $0.body.hasPrefix("one") })
        #expect(
            deliveries.allSatisfy { $0.record.machine.state == .pending || $0.record.machine.reason == "collapsed" })
        #expect(changes.outbox.pending == users.count)
        // Nothing older waits: what was remembered for it is forgotten.
        #expect(try await newest() == 0)
        await changes.stop()
    }

    /// However many others wait for readings, and need others when these have ended.
    @Test func writersThatWaitForReadingsTakeTurns() async throws {
        let reading = Reading()
        var changes = try await Changes(of: users, reading: reading) { $0.triggerBytesMax = 64 << 20 }
        let others = (0..<256).map { "w\($0)" }
        var closed: ByteBudget.Reservation? = try await reading.gate.reserve(1_000)
        try await changes.came(by: others)
        for _ in 1...3 {
            while try await changes.handler.turn() {}
            try await eventually("readings wait") { reading.gate.waitingCount >= 200 }
            // The recipients of the last one are the members of 256.
            try await changes.came(by: others + ["one"])
            let (ended, waiting) = (reading.ended, reading.gate.waitingCount)
            withExtendedLifetime(closed) {}
            closed = nil
            try await eventually("readings end") { reading.ended >= ended + waiting }
            closed = try await reading.gate.reserve(1_000)
        }
        #expect(try reading.count("/members/256") > 0)
        await changes.stop()
    }

    /// Others wait for places.
    @Test func aWriterThatWritesWhileItWaitsKeepsWhatIsReadForIt() async throws {
        let reading = Reading()
        var changes = try await Changes(of: users, reading: reading) { $0.triggerBytesMax = 64 << 20 }
        var closed: ByteBudget.Reservation? = try await reading.gate.reserve(1_000)
        try await changes.came(by: (0..<300).map { "w\($0)" })
        while try await changes.handler.turn() {}
        try await eventually("readings wait") { reading.gate.waitingCount == 256 }
        // The recipients of these are the members of 0.
        for writer in ["w7", "w7", "w299"] {
            try await changes.came(by: writer)
            while try await changes.handler.turn() {}
        }
        withExtendedLifetime(closed) {}
        closed = nil
        try await eventually("all is done") {
            while try await changes.handler.turn() {}
            return changes.backlog.isEmpty
        }
        #expect(try reading.count("/members/7") == 1 && reading.count("/members/299") == 1)
        await changes.stop()
    }

    /// The position that is shown is one through which all is accepted.
    @Test func theOldestChangeThatWaitsIsKnown() async throws {
        var changes = try await Changes(of: users)
        #expect(changes.backlog.oldestVersion == nil)
        try await changes.came(2, by: "a")
        try await changes.came(by: "b")
        #expect(changes.backlog.oldestVersion == 1)
        while try await changes.handler.turn() {}
        #expect(changes.backlog.oldestVersion == nil)
        await changes.stop()
    }

    @Test func whenTooManyBytesWaitTheWriterWithTheMostLosesItsOldest() async throws {
        var changes = try await Changes(of: users) { $0.backlogBytesMax = 100_000 }
        for _ in 1...3 { try await changes.came(by: "few", bytes: 1_000) }
        for _ in 1...60 { try await changes.came(by: "many", bytes: 3_000) }
        #expect(changes.backlog.byteCount <= 104_000)
        let rows = try await changes.outbox.store.read { snapshot in
            try snapshot.rows(RecordKey(.change)).compactMap { try snapshot.record(ChangeRecord.self, $0.key) }
        }
        #expect(rows.count { $0.change.uid == "few" } == 3)
        let left = rows.filter { $0.change.uid == "many" }.map(\.version)
        #expect(left == (0..<UInt64(left.count)).map { 63 - UInt64(left.count) + 1 + $0 } && left.count > 20)
        #expect(changes.backlog.rowCount == rows.count)
        await changes.stop()
    }

    @Test func changesThatCannotBeReadAreSetAside() async throws {
        var changes = try await Changes(of: users)
        for _ in 1...3 { try await changes.came(by: "a") }
        try await changes.outbox.change { draft in
            let rows = try draft.transaction.rows(RecordKey(.change))
            draft.writes.put(rows[1].key, bytes: [0x7B])
        }
        while try await changes.handler.turn() {}
        #expect(try await changes.outbox.store.read { try $0.count(.change) } == 0)
        #expect(changes.outbox.unreadableCount == 1)
        #expect(try await changes.accepted.flatMap(\.self).count == 2 * users.count)
        await changes.stop()
    }
}
