import HatoFetch
import HatoFollow
import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import TestAuth
import Testing

@testable import HatoNotifier

/// Devices go with their users and sessions, also with those that ended while the notifier could not learn of it.
@Suite(.timeLimit(.minutes(5)))
struct AccountDeviceTests {
    /// A notifier that follows `auth`, with devices of two users.
    private func run(
        _ auth: FakeAuth, on store: any Store, channels: [any Channel]? = nil,
        _ body: (TestNotifier) async throws -> Void
    ) async throws {
        let notifier = try await TestNotifier.start(store: store, channels: channels) { configuration in
            configuration.auth = RPCClientConfiguration(host: "127.0.0.1", port: auth.port)
            configuration.authKey = FakeAuth.key
        }
        do { try await body(notifier) } catch {
            await notifier.stop()
            throw error
        }
        await notifier.stop()
    }

    private func devices(_ store: any Store) throws -> [String] {
        try store.snapshot().rows(RecordKey(.device)).map { row in
            try RecordCodec.decode(DeviceRecord.self, row.value, key: row.key.bytes).device
        }
    }

    /// Writes devices, each as `uid/session`; without a session: of an administrator.
    private func write(_ names: [String], in store: any Store) async throws {
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            for name in names {
                let parts = name.split(separator: "/").map(String.init)
                var device = DeviceRecord(device: name, uid: parts[0], platform: .webhook, createdAt: 0)
                (device.url, device.secret) = ("https://example.com/\(name)", "s")
                if parts.count > 1 { device.session = parts[1] }
                writes.put(device.key, device)
                writes.put(device.userKey)
                writes.put(device.addressKey, bytes: Array(device.device.utf8))
            }
            try writes.apply(to: transaction)
        }
    }

    @Test func devicesGoWithTheirSessionAndTheirUser() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await write(["a", "a/app", "a/tablet", "b/app"], in: store)
        try await run(auth, on: store) { _ in
            try await auth.write(FakeEvent(.signedOut, "a", session: "tablet"), FakeEvent(.disabled, "b"))
            try await eventually("the device of the session is gone") {
                try devices(store) == ["a", "a/app", "b/app"]
            }
            try await auth.write(FakeEvent(.deleted, "a"), FakeEvent(.created, "c"))
            try await eventually("the devices of the user are gone") { try devices(store) == ["b/app"] }
            // Nothing leads to them any more.
            #expect(try store.snapshot().rows(RecordKey(.deviceOfUser)).count == 1)
            #expect(try store.snapshot().rows(RecordKey(.deviceAtAddress)).count == 1)
        }
        await auth.stop()
    }

    private func subscribe(_ uids: [String], in store: any Store) async throws {
        for uid in uids {
            _ = try await store.write { transaction in
                var changes = TopicChanges()
                _ = try changes.subscribe(uid, to: "t", topicsMax: 9, in: transaction)
                try changes.writes.apply(to: transaction)
            }
        }
    }

    @Test func topicsGoWithTheirUser() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await subscribe(["a", "b"], in: store)
        try await run(auth, on: store) { _ in
            try await auth.write(FakeEvent(.signedOut, "b", session: "s"), FakeEvent(.deleted, "a"))
            try await eventually("the subscription is gone") {
                try TopicReading(store.snapshot()).users(of: "t", after: nil, limit: 9) == ["b"]
            }
            #expect(try TopicReading(store.snapshot()).userCount(of: "t") == 1)
        }
        await auth.stop()
    }

    @Test func missedEventsLeaveNoTopicOfUsersThatAreNoMore() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await auth.write(FakeEvent(.created, "x"))
        _ = try await store.write {
            RefusalRows(prefix: RecordKey(.refusal).bytes).put(AccountPosition(1, epoch: "another"), in: $0)
        }
        // An administrator registered the device of e, which is not in auth.
        try await write(["a/app", "b/app", "e"], in: store)
        try await subscribe(["a", "b", "c", "d", "e"], in: store)
        auth.setSessions("a", ["app"])
        auth.setSessions("c", [])
        try await run(auth, on: store) { _ in
            try await eventually("those of users that are no more are gone") {
                try TopicReading(store.snapshot()).users(of: "t", after: nil, limit: 9) == ["a", "c", "e"]
            }
        }
        await auth.stop()
    }

    @Test func missedEventsLeaveNoCountOfUsersThatAreNoMore() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await auth.write(FakeEvent(.created, "x"))
        _ = try await store.write { transaction in
            RefusalRows(prefix: RecordKey(.refusal).bytes).put(AccountPosition(1, epoch: "another"), in: transaction)
            var writes = RecordWrites()
            for uid in ["a", "b", "c"] {
                writes.put(BadgeRecord.key(uid), BadgeRecord(total: 1, threads: 1))
                writes.put(ThreadRecord.key(UserThread(uid: uid, thread: "t")), ThreadRecord(count: 1, changed: 1))
            }
            try writes.apply(to: transaction)
        }
        // An administrator registered the device of c, which is not in auth.
        try await write(["c"], in: store)
        auth.setSessions("a", [])
        try await run(auth, on: store) { _ in
            try await eventually("those of the user that is no more are gone") {
                let rows = try store.snapshot()
                return try ["a", "b", "c"].map { try rows.rows(RecordKey(.badge).with($0)).count } == [2, 0, 2]
            }
        }
        await auth.stop()
    }

    @Test func missedEventsLeaveNoDeviceOfUsersAndSessionsThatAreNoMore() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await auth.write(FakeEvent(.created, "x"))
        // The position of another history.
        _ = try await store.write {
            RefusalRows(prefix: RecordKey(.refusal).bytes).put(AccountPosition(1, epoch: "another"), in: $0)
        }
        try await write(["a", "a/app", "a/tablet", "b", "b/app", "c/app"], in: store)
        auth.setSessions("a", ["also", "app"])
        auth.setSessions("c", ["app", "other"])
        try await run(auth, on: store) { _ in
            // Those that an administrator registered stay: their users need not be accounts.
            try await eventually("they are gone") { try devices(store) == ["a", "a/app", "b", "c/app"] }
            try await eventually("the position is that of the new history") {
                try RefusalRows(prefix: RecordKey(.refusal).bytes).position(in: store.snapshot())?.epoch
                    == auth.store.epoch.description
            }
        }
        await auth.stop()
    }

    /// Events were missed: the position is that of another history.
    private func missEvents(_ auth: FakeAuth, in store: any Store) async throws {
        try await auth.write(FakeEvent(.created, "x"))
        _ = try await store.write {
            RefusalRows(prefix: RecordKey(.refusal).bytes).put(AccountPosition(1, epoch: "another"), in: $0)
        }
    }

    @Test func anErrorOfOneAccountStopsNoOther() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await missEvents(auth, in: store)
        try await write(["a/app", "b/app", "c/app"], in: store)
        try await subscribe(["a", "z"], in: store)
        auth.failSessions(of: ["a"])
        auth.setSessions("b", ["app"])
        try await run(auth, on: store) { _ in
            try await eventually("the others were asked about") {
                try devices(store) == ["a/app", "b/app"]
                    && TopicReading(store.snapshot()).users(of: "t", after: nil, limit: 9) == ["a"]
            }
            // Events are followed meanwhile.
            try await auth.write(FakeEvent(.signedOut, "b", session: "app"))
            try await eventually("the session is gone") { try devices(store) == ["a/app"] }
            auth.failSessions(of: [])
            try await eventually("the last one is gone") {
                try devices(store).isEmpty && store.snapshot().count(.reconciliation) == 0
                    && TopicReading(store.snapshot()).users(of: "t", after: nil, limit: 9).isEmpty
            }
            #expect(auth.sessionLists["b"] == 1 && auth.sessionLists["c"] == 1)
        }
        await auth.stop()
    }

    @Test func itGoesOnWhereTheProcessBeforeStopped() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        let users = (1_000..<1_200).map { "u\($0)" }
        try await missEvents(auth, in: store)
        try await write(users.map { "\($0)/app" }, in: store)
        for uid in users { auth.setSessions(uid, ["app"]) }
        // As many as are kept to be tried again: others wait for them.
        let failing = Set(users[70..<134])
        auth.failSessions(of: failing)
        try await run(auth, on: StayingOpen(store)) { _ in
            let key = ReconciliationRecord.key
            try await eventually("it waits") {
                try store.snapshot().readable(ReconciliationRecord.self, key)?.failed.count == failing.count
            }
        }
        #expect(auth.sessionLists[users[133]] != nil && auth.sessionLists[users[134]] == nil)
        auth.failSessions(of: [])
        auth.setSessions(users[199], nil)
        try await run(auth, on: StayingOpen(store)) { _ in
            try await eventually("all were asked about") { try store.snapshot().count(.reconciliation) == 0 }
        }
        #expect(try devices(store).count == 199)
        #expect(users[..<70].allSatisfy { auth.sessionLists[$0] == 1 }, "none is asked about twice")
        await auth.stop()
    }

    /// An event says that it came, while the response of auth is older.
    @Test func aUserThatComesWhileAuthIsAskedStays() async throws {
        let (auth, store, gate) = (try await FakeAuth.start(), try MemoryStore(), Gate())
        try await missEvents(auth, in: store)
        try await subscribe(["a"], in: store)
        try await write(["b/app"], in: store)
        auth.setSessions("b", ["app"])
        auth.holdSessions { if $0 == "a" { await gate.pass() } }
        try await run(auth, on: store) { _ in
            try await eventually("auth was asked") { auth.sessionLists["a"] == 1 }
            auth.setSessions("a", [])
            try await auth.write(FakeEvent(.created, "a"), FakeEvent(.signedOut, "b", session: "app"))
            try await eventually("the events are handled") { try devices(store).isEmpty }
            gate.open()
            try await eventually("auth was asked about all") { try store.snapshot().count(.reconciliation) == 0 }
            #expect(auth.sessionLists["a"] == 2)
            #expect(try store.snapshot().count(.former) == 0 && store.snapshot().count(.gone) == 0)
            #expect(try TopicReading(store.snapshot()).users(of: "t", after: nil, limit: 9) == ["a"])
        }
        await auth.stop()
    }

    @Test func aUserThatIsThereAgainCountsThoughItsEventWasMissed() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await missEvents(auth, in: store)
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            _ = try GoneUsers.begin("a", at: 1, in: transaction, &writes)
            try writes.apply(to: transaction)
        }
        try await subscribe(["a"], in: store)
        auth.setSessions("a", [])
        try await run(auth, on: store) { notifier in
            try await eventually("auth was asked") { try store.snapshot().count(.former) == 0 }
            let set = Notifier.Badges.Set(thread: "c1", count: 2, uid: "a")
            #expect(try await notifier.client.call(set).badge == 2)
        }
        await auth.stop()
    }

    @Test func keysThatCannotBeReadStopNothing() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await missEvents(auth, in: store)
        try await write(["a/app", "c/app"], in: store)
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            // Without a device, and without a user.
            writes.put(RecordKey(.deviceOfUser).with("b"))
            writes.put(RecordKey(.deviceOfUser).with(ArraySlice<UInt8>([0x62, 0xFF, 0, 1])))
            try writes.apply(to: transaction)
        }
        try await run(auth, on: store) { _ in
            try await eventually("the devices are gone") { try devices(store).isEmpty }
            try await eventually("auth was asked about all") { try store.snapshot().count(.reconciliation) == 0 }
            try await write(["b/app"], in: store)
            try await auth.write(FakeEvent(.signedOut, "b", session: "app"))
            try await eventually("events are handled") { try devices(store).isEmpty }
        }
        await auth.stop()
    }

    /// Members of a room may go on counting for a user that is gone.
    @Test func nothingIsCountedForAUserThatIsGoneUntilItIsThereAgain() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await write(["a", "b/app"], in: store)
        try await run(auth, on: store) { notifier in
            func count(_ uid: String) async throws -> Int {
                try await notifier.client.call(Notifier.Badges.Set(thread: "c1", count: 2, uid: uid)).badge
            }
            #expect(try await count("a") == 2)
            try await auth.write(FakeEvent(.deleted, "a"), FakeEvent(.deleted, "none"))
            try await eventually("the rows are gone") { try store.snapshot().count(.badge) == 0 }
            for uid in ["a", "none"] { #expect(try await count(uid) == 0, "\(uid)") }
            #expect(try await count("b") == 2)
            try await auth.write(FakeEvent(.created, "a"))
            try await eventually("it is there again") { try await count("a") == 2 }
            // An administrator registers a device of the other one.
            try await notifier.addDevice(of: "none", at: "http://127.0.0.1:9/hook")
            #expect(try await count("none") == 2)
        }
        await auth.stop()
    }

    /// A device that is registered again belongs to its newest session.
    @Test func deviceBelongsToTheSessionThatRegisteredItLast() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        try await run(auth, on: store) { notifier in
            for session in ["one", "two"] {
                _ = try await notifier.client.call(
                    method: "notifier.devices.register",
                    params: [
                        "platform": "webhook", "url": "http://127.0.0.1:9/hook",
                        "as": ["uid": "a", "token": ["sid": .string(session)]],
                    ])
            }
            try await auth.write(FakeEvent(.signedOut, "a", session: "one"), FakeEvent(.keyRevoked, kid: "k"))
            let rows = RefusalRows(prefix: RecordKey(.refusal).bytes)
            try await eventually("the first session is handled") { try rows.position(in: store.snapshot()) != nil }
            #expect(try devices(store).count == 1)
            try await auth.write(FakeEvent(.signedOut, "a", session: "two"))
            try await eventually("the device is gone") { try devices(store).isEmpty }
        }
        await auth.stop()
    }

    /// A registration that takes long, of a session that ends meanwhile: no event would remove the device any more.
    @Test func noDeviceIsRegisteredForASessionThatHasEnded() async throws {
        let (auth, store) = (try await FakeAuth.start(), try MemoryStore())
        let (channel, gate) = (WaitingChecks(), Gate())
        channel.gate.withLock { $0 = gate }
        try await run(auth, on: store, channels: [channel]) { notifier in
            let client = notifier.client
            let token = try auth.token("a", session: "s")
            let registration = Task {
                try await client.call(Notifier.Devices.Register(url: "https://example.com"), credential: token)
            }
            try await eventually("the address is being checked") { channel.count.withLock { $0 } == 1 }
            var event = FakeEvent(.signedOut, "a", session: "s")
            event.time = WallClock.milliseconds()
            try await auth.write(event)
            try await eventually("the session is refused") {
                try store.snapshot().rows(RecordKey(.refusal)).count == 2
            }
            gate.open()
            let error = await #expect(throws: RPCError.self) { try await registration.value }
            #expect(error?.reason == "TOKEN_EXPIRED")
            #expect(try devices(store).isEmpty)
        }
        await auth.stop()
    }
}

/// Checks of addresses that wait.
private final class WaitingChecks: Channel {
    let platform = Notifier.Platform.webhook
    let gate = Mutex<Gate?>(nil)
    let count = Mutex(0)

    func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        count.withLock { $0 += 1 }
        await gate.withLock { $0 }?.pass()
        return address
    }

    func deliver(_ delivery: Delivery) async -> DeliveryOutcome { .delivered(DeliveryResponse(status: 200)) }

    func shutdown() async {}
}
