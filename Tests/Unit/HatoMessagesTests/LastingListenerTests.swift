import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Synchronization
import TestStores
import Testing

@testable import HatoMessages

/// `MessagesListener`, and the snapshots it makes: what a client sees when its service goes and comes back.
@Suite struct LastingListenerTests {
    private static let first = ["x": 1, "y": 1] as JSONValue

    /// A service whose value of `/a` has been seen stops; `meanwhile` happens to its store, or to the one that takes
    /// its place, where the listener cannot reach it; `afterwards` begins with a service at the old port.
    private struct Restart {
        var nextStore: (any Store)?
        var listening: (RPCClient) -> MessagesListener = { $0.listen(Messages.Listen(path: "/a")) }

        func run<Iterator: AsyncIteratorProtocol>(
            _ iterator: (MessagesListener) -> Iterator, _ meanwhile: (RunningMessages) async throws -> Void,
            afterwards: (RunningMessages, inout Iterator) async throws -> Void
        ) async throws {
            let store = KeptStore(try MemoryStore())
            var (port, iterating) = (0, Iterator?.none)
            try await RunningMessages.with(store: store) { running in
                port = running.port
                _ = try await running.user("b").call(Messages.Set(path: "/a", value: LastingListenerTests.first))
                var new = iterator(listening(running.user("a")))
                _ = try await new.next()
                iterating = new
            }
            try await RunningMessages.with(store: nextStore ?? store, meanwhile)
            var same = try #require(iterating)
            iterating = nil
            try await RunningMessages.with(store: nextStore ?? store, change: { $0.server.port = port }) { running in
                try await afterwards(running, &same)
            }
        }
    }

    private static func events(_ listener: MessagesListener) -> MessagesListener.Iterator {
        listener.makeAsyncIterator()
    }

    @Test func whatWasMissedInARestartComesMerged() async throws {
        let lost = Mutex(0)
        var restart = Restart()
        restart.listening = { client in
            var listener = client.listen(Messages.Listen(path: "/a"))
            listener.whenLost = { _ in lost.withLock { $0 += 1 } }
            return listener
        }
        try await restart.run(Self.events) { running in
            for number in 2...4 {
                _ = try await running.user("b").call(Messages.Set(path: "/a/x", value: .number(Double(number))))
            }
        } afterwards: { running, events in
            #expect(try await events.next()?.events.map { SeenEvent($0) } == [.put("/x", 4)])
            _ = try await running.user("b").call(Messages.Set(path: "/a/z", value: 1))
            #expect(try await events.next()?.events.map { SeenEvent($0) } == [.put("/z", 1)])
        }
        #expect(lost.withLock { $0 } == 1)
    }

    @Test func noEventIsRepeatedWhenNothingWasMissed() async throws {
        try await Restart().run(Self.events) { _ in
        } afterwards: { running, events in
            // The listener that lost its connection comes back with its reader.
            let held = events
            async let next = Self.next(of: held)
            try await eventually("it listens again") {
                try await running.administrator.call(Messages.Stats()).listeners == 1
            }
            _ = try await running.user("b").call(Messages.Set(path: "/a/z", value: 1))
            #expect(try await next == [.put("/z", 1)])
        }
    }

    /// Else its changes would be forgotten one day, although it comes back all the time.
    @Test func quietListenerResumesFromTheLastConfirmedVersion() async throws {
        let store = KeptStore(try MemoryStore())
        let asked = Mutex<[UInt64?]>([])
        var (port, iterating) = (0, MessagesListener.Iterator?.none)
        try await RunningMessages.with(store: store) { running in
            port = running.port
            let client = running.user("a")
            let listener = MessagesListener(Messages.Listen(path: "/a")) { request in
                let subscription = try await client.subscribe(request)
                asked.withLock { $0.append(request.since) }
                return subscription
            }
            var events = listener.makeAsyncIterator()
            _ = try await events.next()
            _ = try await running.user("b").call(Messages.Set(path: "/elsewhere", value: 1))
            iterating = events
        }
        let held = try #require(iterating)
        iterating = nil
        let reading = Task { try await Self.next(of: held) }
        try await RunningMessages.with(store: store, change: { $0.server.port = port }) { _ in
            try await eventually("it listens again") { asked.withLock { $0.count } == 2 }
        }
        try await RunningMessages.with(store: store, change: { $0.server.port = port }) { running in
            try await eventually("it listens once more") { asked.withLock { $0.count } == 3 }
            _ = try await running.user("b").call(Messages.Set(path: "/a/z", value: 1))
            #expect(try await reading.value == [.put("/z", 1)])
        }
        let versions = asked.withLock { $0.map { $0 ?? 0 } }
        #expect(versions[0] == 0)
        #expect(versions[1] < versions[2])
    }

    private static func next(of events: MessagesListener.Iterator) async throws -> [SeenEvent]? {
        var events = events
        return try await events.next()?.events.map { SeenEvent($0) }
    }

    @Test func compactedChangesComeAsTheWholeValue() async throws {
        try await Restart().run(Self.events) { running in
            _ = try await running.user("b").call(Messages.Set(path: "/a/x", value: 2))
            _ = try await running.user("b").call(Messages.Set(path: "/a/x", value: 3))
            try running.store.compactCommits(through: running.store.version - 1)
        } afterwards: { _, events in
            let event = try await events.next()
            #expect(event?.events.map { SeenEvent($0) } == [.put("/", ["x": 3, "y": 1])])
        }
    }

    @Test func listenerInAnotherHistoryGetsTheDifference() async throws {
        let restart = Restart(nextStore: KeptStore(try MemoryStore()))
        try await restart.run({ $0.snapshots.makeAsyncIterator() }) { running in
            for _ in 0..<3 {
                _ = try await running.user("b").call(Messages.Set(path: "/a", value: ["x": 1, "z": 2]))
            }
        } afterwards: { running, snapshots in
            let snapshot = try #require(try await snapshots.next())
            let (x, y, z) = (TreeKey(unchecked: "x"), TreeKey(unchecked: "y"), TreeKey(unchecked: "z"))
            let (one, two) = (TreeNode.leaf(.number(1), priority: nil), TreeNode.leaf(.number(2), priority: nil))
            #expect(snapshot.childEvents == [.removed(y, one), .added(z, two, previous: x)])
            #expect(snapshot.node == (try TreeNode(json: ["x": 1, "z": 2])))
        }
    }

    @Test func serviceThatIsNotReadyIsAskedAgain() async throws {
        let openings = Mutex(0)
        var restart = Restart()
        restart.listening = { client in
            MessagesListener(Messages.Listen(path: "/a")) { request in
                let number = openings.withLock { count in
                    count += 1
                    return count
                }
                if (2...5).contains(number) { throw RPCError.unavailable(reason: "starting", "Not yet") }
                return try await client.subscribe(request)
            }
        }
        try await restart.run(Self.events) { running in
            _ = try await running.user("b").call(Messages.Set(path: "/a/x", value: 2))
        } afterwards: { _, events in
            let event = try await events.next()
            #expect(event?.events.map { SeenEvent($0) } == [.put("/x", 2)])
        }
        #expect(openings.withLock { $0 } == 6)
    }

    @Test(arguments: [false, true]) func serviceIsGivenTheTimeItAsksForWithinBounds(isBounded: Bool) async throws {
        let asked = isBounded ? 3_600_000 : 200
        let refusals = Mutex<[ContinuousClock.Instant]>([])
        var restart = Restart()
        restart.listening = { client in
            var listener = MessagesListener(Messages.Listen(path: "/a")) { request in
                // Of what is asked from the second opening on.
                guard request.since != nil else { return try await client.subscribe(request) }
                let isRefused = refusals.withLock { refusals in
                    refusals.append(.now)
                    return refusals.count == 1
                }
                if isRefused {
                    throw RPCError.resourceExhausted(reason: "busy", "Others first", retryAfterMs: asked)
                }
                return try await client.subscribe(request)
            }
            if isBounded { listener.retryAfterMax = .milliseconds(20) }
            return listener
        }
        try await restart.run(Self.events) { running in
            _ = try await running.user("b").call(Messages.Set(path: "/a/x", value: 2))
        } afterwards: { _, events in
            let event = try await events.next()
            #expect(event?.events.map { SeenEvent($0) } == [.put("/x", 2)])
        }
        let times = refusals.withLock { $0 }
        try #require(times.count >= 2)
        // Never earlier, on however fast a machine.
        #expect(times[1] - times[0] >= .milliseconds(isBounded ? 20 : asked))
    }

    @Test func waitThatMakesNoSenseIsNone() {
        for wait in ["soon", -1, nil] as [JSONValue] {
            let error = RPCError(received: .resourceExhausted, message: "", data: ["retryAfterMs": wait])
            #expect(error.retryAfter == nil)
        }
        let late = RPCError(received: .resourceExhausted, message: "", data: ["retryAfterMs": 1e300])
        #expect(late.retryAfter == Duration.seconds(365 * 86_400))
        #expect(RPCError.unavailable(reason: "stopping", "").retryAfter == nil)
        #expect(RPCError.resourceExhausted(reason: "busy", "", retryAfterMs: 5).retryAfter == Duration.milliseconds(5))
    }

    // MARK: Ends

    @Test func lostRightEndsItForGood() async throws {
        try await RunningMessages.with { running in
            var events = running.user("a").listen(Messages.Listen(path: "/a")).makeAsyncIterator()
            _ = try await events.next()
            _ = try await running.administrator.call(Messages.Rules.Set(rules: DefaultRules.deny))
            let end = await Self.end(of: &events)
            #expect((end as? Messages.Cancelled)?.reason == "permission_denied")
            #expect(try await events.next() == nil)
        }
        try await Restart().run(Self.events) { running in
            _ = try await running.administrator.call(Messages.Rules.Set(rules: DefaultRules.deny))
        } afterwards: { _, events in
            let end = await Self.end(of: &events)
            #expect((end as? RPCError)?.code == .permissionDenied)
        }
    }

    @Test func whatCannotBeOpenedSaysSoAtOnce() async throws {
        var nobody = RPCClient(RPCClientConfiguration(host: "127.0.0.1", port: 1))
            .listen(Messages.Listen(path: "/a")).makeAsyncIterator()
        let unreachable = await Self.end(of: &nobody)
        #expect((unreachable as? RPCError)?.reason == "cannot_connect")
        try await RunningMessages.with(rules: DefaultRules.deny) { running in
            var refused = running.user("a").listen(Messages.Listen(path: "/a")).makeAsyncIterator()
            let refusal = await Self.end(of: &refused)
            #expect((refusal as? RPCError)?.code == .permissionDenied)
        }
    }

    @Test func closedClientEndsIt() async throws {
        try await RunningMessages.with { running in
            let client = running.user("a")
            var events = client.listen(Messages.Listen(path: "/a")).makeAsyncIterator()
            _ = try await events.next()
            await client.close()
            let end = await Self.end(of: &events)
            #expect((end as? RPCError)?.reason == "client_closed")
        }
    }

    @Test func listenerThatIsLetGoEndsOnTheServiceToo() async throws {
        try await RunningMessages.with { running in
            let (client, administrator) = (running.user("a"), running.administrator)
            func listeners() async throws -> Int { try await administrator.call(Messages.Stats()).listeners }
            var events: MessagesListener.Iterator? = client.listen(Messages.Listen(path: "/a")).makeAsyncIterator()
            _ = try await events?.next()
            #expect(try await listeners() == 1)
            events = nil
            try await eventually("the listener has ended") { try await listeners() == 0 }

            let listener = client.listen(Messages.Listen(path: "/a"))
            let reader = Task {
                var count = 0
                for try await _ in listener { count += 1 }
                return count
            }
            try await eventually("it listens") { try await listeners() == 1 }
            reader.cancel()
            // Quietly; whether it still saw the first value is left open.
            #expect(try await reader.value <= 1)
            try await eventually("the listener has ended") { try await listeners() == 0 }
            withExtendedLifetime(client) {}
        }
    }

    private static func end(of events: inout MessagesListener.Iterator) async -> (any Error)? {
        do {
            while try await events.next() != nil {}
            return nil
        } catch { return error }
    }

    // MARK: Children

    @Test(arguments: [nil, TreeQuery(order: .child("/n"), limit: .last(4)), TreeQuery(order: .key, limit: .first(3))])
    func childEventsAddUpToTheTree(query: TreeQuery?) async throws {
        var random = SeededRandom(seed: SeededRandom.seed())
        let (store, listen) = (KeptStore(try MemoryStore()), Messages.Listen(path: "/a", query: query))
        var (port, client, mirror) = (0, RPCClient?.none, ChildMirror?.none)
        for _ in 0..<4 {
            try await RunningMessages.with(store: store, change: { $0.server.port = port }) { running in
                port = running.port
                let reader = client ?? running.user("a")
                client = reader
                var seen = mirror ?? ChildMirror(reader.listen(listen))
                for _ in 0..<6 {
                    for _ in 0..<3 { try await Self.write(running, &random) }
                    // In every window, and so sent for certain.
                    for name in ["0", "zz"] {
                        let value = JSONValue.object(["n": .number(Double(store.version) + 100)])
                        _ = try await running.user("b").call(
                            Messages.Set(path: try TreePath("/a/\(name)"), value: value))
                    }
                    let read = try await running.user("b").call(Messages.Get(path: "/a", form: .export))
                    let node = try TreeNode(json: read.value)
                    let selected = (query ?? TreeQuery()).select(from: node)
                    try await seen.read(until: query == nil ? node : .object(unsorted: selected))
                    #expect(seen.keys == selected.map(\.key.text))
                }
                mirror = seen
            }
            try await RunningMessages.with(store: store) { running in
                for _ in 0..<5 { try await Self.write(running, &random) }
            }
        }
    }

    private static func write(_ running: RunningMessages, _ random: inout SeededRandom) async throws {
        func key() -> String { "c\(Int.random(in: 0..<8, using: &random))" }
        func child() -> JSONValue { ["n": .number(Double(Int.random(in: 0..<5, using: &random)))] }
        let client = running.user("b")
        switch Int.random(in: 0..<8, using: &random) {
        case 0: _ = try await client.call(Messages.Remove(path: try TreePath("/a/\(key())")))
        case 1: _ = try await client.call(Messages.Set(path: "/a", value: .object(["c1": child(), "c5": child()])))
        case 2, 3:
            _ = try await client.call(Messages.Update(path: "/a", values: ["c2": nil, "c3": child(), "c6/n": 2]))
        default: _ = try await client.call(Messages.Set(path: try TreePath("/a/\(key())"), value: child()))
        }
    }
}

/// The children according to the events, compared with each snapshot.
private struct ChildMirror {
    private var snapshots: ListenerSnapshots.Iterator
    private var children: [TreeKey: TreeNode] = [:]
    private(set) var keys: [String] = []

    init(_ listener: MessagesListener) { snapshots = listener.snapshots.makeAsyncIterator() }

    mutating func read(until node: TreeNode) async throws {
        while let snapshot = try await snapshots.next() {
            for event in snapshot.childEvents { take(event, in: snapshot) }
            let shown = Dictionary(uniqueKeysWithValues: snapshot.children.map { ($0.key, $0.node) })
            #expect(children == shown)
            keys = snapshot.children.map(\.key.text)
            if snapshot.node == node { return }
        }
        throw EndOfEvents()
    }

    private mutating func take(_ event: ChildEvent, in snapshot: ListenerSnapshot) {
        switch event {
        case .removed(let key, let node):
            let before = children.removeValue(forKey: key)
            #expect(before == node)
        case .added(let key, let node, let previous):
            let before = children.updateValue(node, forKey: key)
            #expect(before == nil)
            expect(key, behind: previous, in: snapshot)
        case .moved(let key, let node, let previous), .changed(let key, let node, let previous):
            let before = children.updateValue(node, forKey: key)
            #expect(before != nil)
            expect(key, behind: previous, in: snapshot)
        }
    }

    private func expect(_ key: TreeKey, behind previous: TreeKey?, in snapshot: ListenerSnapshot) {
        let order = snapshot.children.map(\.key)
        let index = order.firstIndex(of: key) ?? -1
        #expect(index >= 0)
        #expect((index > 0 ? order[index - 1] : nil) == previous)
    }
}
