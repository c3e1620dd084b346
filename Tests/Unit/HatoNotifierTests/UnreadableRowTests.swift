import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Logging
import Testing

@testable import HatoNotifier

/// One damaged row costs what needs it, and nothing else.
@Suite(.timeLimit(.minutes(10))) struct UnreadableRowTests {
    private let clock = TestClock()
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 200))

    private func damage(_ key: RecordKey, in store: any Store) async throws {
        _ = try await store.write { transaction in
            // As all parts of the notifier write: what is known of a device is forgotten.
            var writes = RecordWrites()
            writes.put(key, bytes: [0x7B, 0x22])
            try writes.apply(to: transaction)
        }
    }

    /// Delivers what is due until nothing is; returns the titles.
    private func deliverAll(_ outbox: Outbox) async throws -> [String] {
        var titles: [String] = []
        while true {
            let leases = try await outbox.lease(limit: 100).leases
            guard !leases.isEmpty else { break }
            for lease in leases { try await outbox.record(delivered, of: lease) }
            titles += leases.compactMap(\.delivery.content.text.title)
        }
        return titles
    }

    /// Rows of deliveries that were set aside, whose device is gone: whose they were is not known any more.
    @Test func rowsWithoutALaneAreTakenOutOnceAndMakeNothingPassOthers() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock) { $0.limits.pendingMax = 3 }
        let gone = try await outbox.addDevice("d9", of: "u1")
        let keys = [
            DeliveryRecord.key(try await outbox.send("bad"), 0), DeliveryRecord.key(try await outbox.send("worse"), 0),
        ]
        try await outbox.change { draft in
            for key in keys { draft.writes.put(key, bytes: [0x7B]) }
            gone.delete(in: &draft.writes)
        }
        while outbox.pending > 0 { #expect(try await outbox.lease(limit: 9).leases.isEmpty) }
        #expect(outbox.waiting.total == 2)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.send("a")
        let first = try #require(try await outbox.lease(limit: 9).leases.first)
        // It is one too many, as long as the two of before count.
        let second = try await outbox.send("b")
        #expect(outbox.waiting.total == 2)
        #expect(try await outbox.states(of: second) == [.pending])
        #expect(try await outbox.lease(limit: 9).leases.isEmpty, "the one before is being attempted")
        try await outbox.record(delivered, of: first)
        #expect(try await deliverAll(outbox) == ["b"])
        #expect(outbox.waiting.total == 0)
    }

    enum Damage: CaseIterable { case delivery, notification, device }

    @Test(arguments: Damage.allCases) func oneDamagedRowStopsNoOtherDelivery(_ damaged: Damage) async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        for name in ["d1", "d2"] { try await outbox.addDevice(name, of: name) }
        let bad = try await outbox.send("bad", to: ["d1"])
        clock.advance(by: .seconds(1))
        try await outbox.send("behind", to: ["d1"])
        try await outbox.send("other", to: ["d2"])
        let key =
            switch damaged {
            case .delivery: DeliveryRecord.key(bad, 0)
            case .notification: NotificationRecord.key(bad)
            case .device: DeviceRecord.key("d1")
            }
        try await damage(key, in: store)
        _ = try await outbox.lease(limit: 0)
        let titles = try await deliverAll(outbox) + deliverAll(outbox)
        #expect(titles.sorted() == (damaged == .device ? ["other"] : ["behind", "other"]))
        #expect(outbox.pending == 0 && outbox.unreadableCount == 1)
        #expect(try await store.read { try $0.count(.lane) + $0.count(.due) + $0.count(.leased) } == 0)
        // What can be read itself is kept until the row is repaired.
        #expect(outbox.deadCount == (damaged == .delivery ? 0 : damaged == .device ? 2 : 1))
        #expect(try await outbox.deadLetters(after: nil, limit: 9).dead.allSatisfy { $0.reason == "unreadable" })
        #expect(try await Outbox.test(store, clock).unreadableCount == 1, "counted when it is opened")
        #expect(try await store.read { try $0.value(key) } != nil, "it stays as it is")
    }

    /// A delivery that becomes the head of a lane while others are leased is delivered without waiting for anything
    /// else.
    @Test func whatStandsBehindADamagedOrExpiredHeadIsDeliveredAtOnce() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        for name in ["d1", "d2"] { try await outbox.addDevice(name, of: name) }
        let bad = try await outbox.send("bad", to: ["d1"])
        try await damage(DeliveryRecord.key(bad, 0), in: store)
        _ = try await outbox.accept(outbox.notification("expired", to: ["d2"], timeToLive: .seconds(1)))
        clock.advance(by: .seconds(2))
        for name in ["d1", "d2"] { try await outbox.send("behind", to: [name]) }
        let channel = ScriptedChannel()
        let dispatcher = Dispatcher(
            outbox, channels: [channel], ResultWriter(outbox),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let task = Task { await dispatcher.run() }
        try await eventually("both are delivered") { channel.titles == ["behind", "behind"] && outbox.pending == 0 }
        await dispatcher.stop()
        await task.value
    }

    @Test func aDamagedDeliveryThatWasLeasedOrStandsBehindStopsNothing() async throws {
        let store = try MemoryStore()
        var outbox = try await Outbox.test(store, clock)
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.addDevice("d2", of: "u2")
        for title in ["1", "2", "3"] { try await outbox.send(title, to: ["u1"]) }
        let leased = try await outbox.send("leased", to: ["u2"])
        let leases = try await outbox.lease(limit: 9).leases
        #expect(leases.count == 2)
        let second = try await store.read { snapshot in
            try #require(try snapshot.rows(Lane(device: "d1").prefix).dropFirst().first)
        }
        try await damage(RecordKey(bytes: second.value), in: store)
        try await damage(DeliveryRecord.key(leased, 0), in: store)
        let first = try #require(leases.first { $0.group.uid == "u1" })
        try await outbox.record(delivered, of: first)
        // The process ends, and begins again.
        outbox = try await Outbox.test(store, clock)
        #expect(try await deliverAll(outbox).isEmpty)
        clock.advance(by: .seconds(61))
        #expect(try await deliverAll(outbox) + deliverAll(outbox) == ["3"])
        #expect(outbox.pending == 0 && outbox.unreadableCount == 2)
    }

    @Test func acceptingAndForgettingPassOverDamagedRows() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        for name in ["d1", "d2"] { try await outbox.addDevice(name, of: "u1") }
        let first = try await outbox.send("1", collapseKey: "room")
        try await damage(DeliveryRecord.key(first, 0), in: store)
        try await outbox.send("2", collapseKey: "room")
        #expect(try await deliverAll(outbox) + deliverAll(outbox) == ["2", "2"])
        #expect(outbox.pending == 0 && outbox.unreadableCount == 1)
        try await damage(DeviceRecord.key("d2"), in: store)
        #expect(try await outbox.accept(outbox.notification("3")).recipients == 1)
        #expect(outbox.unreadableCount == 2)
        #expect(try await deliverAll(outbox) == ["3"])
        clock.advance(by: .seconds(40 * 86_400))
        #expect(try await outbox.purge() == nil)
        #expect(outbox.unreadableCount == 1, "that of the device")
        #expect(try await store.read { try $0.count(.delivery) + $0.count(.notification) } == 0)
    }

    // MARK: What is read at start

    private func health(_ notifier: TestNotifier) async throws -> JSONValue {
        try await notifier.client.call(method: "service.health")
    }

    @Test func aDamagedTriggerStopsNeitherTheStartNorOtherTriggers() async throws {
        let channel = ScriptedChannel()
        let store = StayingOpen(try MemoryStore())
        var notifier = try await TestNotifier.start(store: store, channels: [channel])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        for id in ["bad", "good"] { try await notifier.setTrigger(id, recipients: .init(uids: ["u2"]), title: id) }
        await notifier.stop(keepingMessages: true)
        try await damage(TriggerRecord.key("bad"), in: store)
        for _ in 1...2 {
            notifier = try await TestNotifier.start(
                messages: notifier.messages, store: store, channels: [channel])
            #expect(try await health(notifier)["checks"]?["unreadable"] == 1)
            await notifier.stop(keepingMessages: true)
        }
        notifier = try await TestNotifier.start(
            messages: notifier.messages, store: store, channels: [channel])
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        notifier.messages.push("x")
        try await eventually("the other fires") { channel.titles == ["good"] }
        #expect(try await notifier.client.call(Notifier.Triggers.List()).triggers.map(\.id) == ["good"])
        // It is set anew or removed like any other.
        #expect(try await !notifier.setTrigger("bad", recipients: .init(uids: ["u2"]), title: "bad"))
        #expect(try await health(notifier)["checks"]?["unreadable"] == nil)
        try await damage(TriggerRecord.key("bad"), in: store)
        for id in ["good", "bad"] { _ = try await notifier.client.call(Notifier.Triggers.Remove(id: id)) }
        #expect(try await health(notifier)["checks"]?["unreadable"] == nil)
        #expect(try await notifier.stats.cursors.isEmpty)
        await notifier.stop()
    }

    @Test func aDamagedCursorBeginsAgainAtTheOldestChangeAndRepeatsNothing() async throws {
        let channel = ScriptedChannel()
        let store = StayingOpen(try MemoryStore())
        var notifier = try await TestNotifier.start(store: store, channels: [channel])
        try await notifier.addDevice(of: "u2", at: "http://127.0.0.1:1/u2")
        notifier.messages.push("before the trigger")
        try await notifier.setTrigger(recipients: .init(uids: ["u2"]))
        try await eventually("a follower") { notifier.messages.followerCount == 1 }
        notifier.messages.push("1")
        try await eventually("delivered") {
            let isThere = try await notifier.isFollowing(2)
            return isThere && channel.titles.count == 1
        }
        await notifier.stop(keepingMessages: true)
        notifier.messages.push("2")
        try await damage(CursorRecord.key("default"), in: store)
        notifier = try await TestNotifier.start(
            messages: notifier.messages, store: store, channels: [channel])
        try await eventually("it is followed again") { try await notifier.isFollowing(3) }
        try await eventually("delivered") { try await notifier.stats.pending == 0 }
        #expect(channel.deliveries.map(\.content.text.body) == ["1", "2"])
        let checks = try await health(notifier)["checks"]
        #expect(checks?["unreadable"] == 1 && checks?["feeds"]?["default"]?["gaps"] == 1)
        _ = try await notifier.client.call(Notifier.Triggers.Remove(id: "chat-message"))
        #expect(try await health(notifier)["checks"]?["unreadable"] == nil)
        await notifier.stop()
    }

    /// A user with a damaged device registers, lists and is notified on others.
    @Test func aDamagedDeviceStopsNoMethod() async throws {
        let store = try MemoryStore()
        let notifier = try await TestNotifier.start(store: store, channels: [ScriptedChannel()])
        let bad = try await notifier.addDevice(of: "u1", at: "http://127.0.0.1:1/a").device
        try await damage(DeviceRecord.key(bad), in: store)
        let again = try await notifier.addDevice(of: "u1", at: "http://127.0.0.1:1/a").device
        let other = try await notifier.addDevice(of: "u1", at: "http://127.0.0.1:1/b").device
        #expect(again != bad)
        let listed = try await notifier.client.call(Notifier.Devices.List(uid: "u1"))
        #expect(Set(listed.devices.map(\.device)) == [again, other])
        await notifier.stop()
    }

    @Test func damagedRowsStopNeitherForgettingNorFollowers() async throws {
        let store = try MemoryStore()
        let outbox = try await Outbox.test(store, clock)
        try await outbox.addDevice("d1", of: "u1")
        let first = try await outbox.send("1")
        _ = try await store.write { transaction in
            let (key, nothing, damaged): ([UInt8], [UInt8], [UInt8]) = (
                RecordKey(.purge).with(time: 1).bytes, [], [0x7B]
            )
            transaction.put(key.span, nothing.span)
            transaction.record(damaged.span)
        }
        #expect(try await deliverAll(outbox) == ["1"])
        try await damage(DeliveryRecord.key(first, 0), in: store)
        #expect(try await outbox.status(of: first)?.deliveries.isEmpty == true)
        clock.advance(by: .seconds(40 * 86_400))
        #expect(try await outbox.purge() == nil)
        #expect(try await store.read { try $0.count(.purge) + $0.count(.notification) } == 0)
        #expect(store.keptCommits.oldest == store.version)
    }
}
