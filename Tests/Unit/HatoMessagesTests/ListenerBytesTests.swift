import HatoModel
import HatoRPC
import HatoRules
import HatoTree
import Testing

@testable import HatoMessages

/// What listeners take in memory is limited for each client and for all: their number says little, since a path may
/// have 20 KB.
@Suite struct ListenerBytesTests {
    /// Of some 15 KB.
    private static func longPath(_ name: String) throws -> TreePath {
        try TreePath(
            "/" + Array(repeating: name + String(repeating: "k", count: 740), count: 20).joined(separator: "/"))
    }

    /// Enough for one listener to a long path, and many to short ones.
    private static let oneLong = 30_000

    private static func refused(_ client: RPCClient, _ path: TreePath) async -> String? {
        await refusal { try await client.subscribe(Messages.Listen(path: path)) }?.reason
    }

    /// Subscribes as soon as what was held has come back, which happens beside the caller's requests.
    private static func subscribeInTime(_ client: RPCClient, _ path: TreePath) async throws -> RPCSubscription? {
        for _ in 0..<10_000 {
            do { return try await client.subscribe(Messages.Listen(path: path)) } catch let error as RPCError {
                guard error.reason == "too_many_listeners" else { throw error }
            }
        }
        return nil
    }

    @Test func longPathsOfAUserAreLimitedOverItsConnections() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersClientBytesMax = Self.oneLong }) { running in
            let (one, two, other) = (running.user("a"), running.user("a"), running.user("b"))
            let first = try await one.subscribe(Messages.Listen(path: Self.longPath("1")))
            #expect(await Self.refused(two, try Self.longPath("2")) == "too_many_listeners")
            let short = try await two.subscribe(Messages.Listen(path: "/short"))
            let others = try await other.subscribe(Messages.Listen(path: Self.longPath("2")))
            // Listeners of administrators do not count.
            let administrators = [
                try await running.administrator.subscribe(Messages.Listen(path: Self.longPath("3"))),
                try await running.administrator.subscribe(Messages.Listen(path: Self.longPath("4"))),
            ]
            first.cancel()
            let again = try await Self.subscribeInTime(two, Self.longPath("2"))
            #expect(again != nil)
            #expect(await Self.refused(one, try Self.longPath("1")) == "too_many_listeners")
            withExtendedLifetime((short, others, administrators, again)) {}
        }
    }

    @Test func longBoundsOfQueriesCount() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersClientBytesMax = Self.oneLong }) { running in
            let client = running.user("a")
            func listen(_ name: String) -> Messages.Listen {
                let bound = TreeQuery.Cut(
                    SortValue(TreeNode.leaf(.string(name + String(repeating: "x", count: 14_000)))), .beforeAll)
                return Messages.Listen(path: "/q", query: TreeQuery(order: .value, start: bound))
            }
            let first = try await client.subscribe(listen("1"))
            #expect(await refusal { try await client.subscribe(listen("2")) }?.reason == "too_many_listeners")
            withExtendedLifetime(first) {}
        }
    }

    @Test func whatAClosedConnectionHeldIsFree() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersClientBytesMax = Self.oneLong }) { running in
            let line = try await RawLines.connect(running, as: "a")
            let path = try Self.longPath("1").text
            #expect(try await line.response("listen", #""path":"\#(path)""#, of: "messages")["result"] != nil)
            let client = running.user("a")
            #expect(await Self.refused(client, try Self.longPath("2")) == "too_many_listeners")
            line.end(.reset)
            let again = try await Self.subscribeInTime(client, Self.longPath("2"))
            #expect(again != nil)
        }
    }

    @Test func whatRulesAndDroppedDatabasesEndIsFree() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersClientBytesMax = Self.oneLong }) { running in
            let (client, admin) = (running.user("a"), running.administrator)
            let name = try DatabaseName("other")
            _ = try await admin.call(Messages.Databases.Create(database: name))
            _ = try await admin.call(Messages.Rules.Set(database: name, rules: DefaultRules.signedIn))
            var held = [try await client.subscribe(Messages.Listen(path: Self.longPath("1")))]
            var listen = Messages.Listen(path: try Self.longPath("2"))
            listen.database = name
            #expect(await refusal { try await client.subscribe(listen) }?.reason == "too_many_listeners")
            _ = try await admin.call(Messages.Rules.Set(rules: DefaultRules.deny))
            // The listeners that the commit ends have ended before its response.
            held.append(try await client.subscribe(listen))
            _ = try await admin.call(Messages.Rules.Set(rules: DefaultRules.signedIn))
            #expect(await Self.refused(client, try Self.longPath("1")) == "too_many_listeners")
            _ = try await admin.call(Messages.Databases.Drop(database: name))
            held.append(try await client.subscribe(Messages.Listen(path: Self.longPath("1"))))
            withExtendedLifetime(held) {}
        }
    }

    /// What listeners share counts once in all.
    @Test func bytesOfAllAreLimited() async throws {
        // Enough for two.
        let max = Self.oneLong * 3 / 2
        try await RunningMessages.with(change: { $0.limits.listenersServiceBytesMax = max }) { running in
            let (other, admin, second) = (running.user("b"), running.administrator, running.administrator)
            let held = try await admin.subscribe(Messages.Listen(path: Self.longPath("0")))
            let first = try await admin.subscribe(Messages.Listen(path: Self.longPath("1")))
            #expect(await Self.refused(other, try Self.longPath("2")) == "too_many_listeners")
            #expect(await Self.refused(admin, try Self.longPath("2")) == "too_many_listeners")
            let same = try await second.subscribe(Messages.Listen(path: Self.longPath("1")))
            first.cancel()
            #expect(await Self.refused(admin, try Self.longPath("2")) == "too_many_listeners")
            same.cancel()
            let again = try await Self.subscribeInTime(admin, Self.longPath("2"))
            #expect(again != nil)
            withExtendedLifetime((held, second)) {}
        }
    }

    @Test func clientAtItsLimitLeavesBytesForOthers() async throws {
        try await RunningMessages.with(change: {
            $0.limits.listenersClientBytesMax = 4 * Self.oneLong
            $0.limits.listenersServiceBytesMax = 4 * Self.oneLong
        }) { running in
            let client = running.user("a")
            var held: [RPCSubscription] = []
            while held.count < 100,
                let one = try? await client.subscribe(Messages.Listen(path: Self.longPath("\(held.count)")))
            {
                held.append(one)
            }
            #expect(held.count > 1 && held.count < 100)
            let next = running.user("b")
            let other = try await next.subscribe(Messages.Listen(path: Self.longPath("b")))
            withExtendedLifetime((held, other, next)) {}
        }
    }

    @Test func manyClientsThatTakeWhatTheyCanLeaveSomethingForTheNext() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersServiceBytesMax = 1 << 20 }) { running in
            var held: [RPCSubscription] = []
            let clients = (0..<20).map { running.user("many\($0)") }
            for (number, client) in clients.enumerated() {
                // Long paths first, then short ones, until not even these are accepted.
                for path in [try Self.longPath("\(number)"), try TreePath("/short\(number)")] {
                    for index in 0..<200 {
                        let child = try TreePath("\(path.text)/\(index)")
                        guard let one = try? await client.subscribe(Messages.Listen(path: child)) else { break }
                        held.append(one)
                    }
                }
            }
            let next = running.user("next")
            held.append(try await next.subscribe(Messages.Listen(path: "/next")))
            for client in clients {
                let refusal = await refusal { try await client.subscribe(Messages.Listen(path: "/more")) }
                #expect(refusal?.isRetryable == true)
            }
            withExtendedLifetime((held, clients, next)) {}
        }
    }

    /// Not those of the topic that grows: its client may have little.
    @Test func whenAllAreTooLargeTheClientWithTheMostLosesItsNewest() async throws {
        let key = TopicKey(database: DatabaseID(rawValue: 1), path: try Self.longPath("1"))
        let long = ListenerCost.bytes(of: key) + ListenerCost.listener + ListenerCost.authorisation
        try await RunningMessages.with(change: { $0.limits.listenersServiceBytesMax = long * 17 / 4 }) { running in
            let (client, admin) = (running.user("a"), running.administrator)
            let (small, smaller) = (running.user("b"), running.user("c"))
            let first = try await client.subscribe(Messages.Listen(path: Self.longPath("1")))
            var newest = EventReader(try await client.subscribe(Messages.Listen(path: Self.longPath("2"))))
            _ = try await newest.next()
            let third = try await smaller.subscribe(Messages.Listen(path: Self.longPath("3")))
            let bound = TreeQuery.Cut(SortValue(TreeNode.leaf(.number(-1))), .beforeAll)
            let query = TreeQuery(order: .value, start: bound)
            var growing = EventReader(try await small.subscribe(Messages.Listen(path: "/q", query: query)))
            _ = try await growing.next()
            // Somewhat more than one of the others, less than two.
            for number in 0..<(long * 17 / 10 / 800) {
                let child = "\(number)" + String(repeating: "k", count: 700)
                _ = try await admin.call(Messages.Set(path: TreePath("/q/\(child)"), value: .number(Double(number))))
            }
            _ = try await admin.call(Messages.Set(path: "/q/last", value: 1))
            #expect(try await newest.nextNotification()?.method == Messages.Cancelled.method)
            var seen = ""
            while !seen.contains("last") { seen = "\(try await growing.next())" }
            withExtendedLifetime((first, third, client, small, smaller)) {}
        }
    }

    /// Any client can cause these lines, and keys may be names of people.
    @Test func cancelledListenersAreLoggedByTheShapeOfTheirPathAndNotEachOfThem() async throws {
        let log = LogLines(of: "listeners cancelled")
        try await RunningMessages.with(
            change: { $0.server.limits.responseBytesMax = 20_000 }, logger: log.logger
        ) { running in
            let (client, admin) = (running.user("a"), running.administrator)
            var listeners: [EventReader] = []
            for number in 1...20 {
                let query = TreeQuery(order: .key, limit: .first(number))
                listeners.append(
                    EventReader(try await client.subscribe(Messages.Listen(path: "/sazae", query: query))))
            }
            for index in listeners.indices { _ = try await listeners[index].next() }
            let start = ContinuousClock.now
            _ = try await admin.call(
                Messages.Set(path: "/sazae/wakame", value: .string(String(repeating: "x", count: 30_000))))
            for index in listeners.indices {
                #expect(try await listeners[index].nextNotification()?.method == Messages.Cancelled.method)
            }
            let seconds = Int((ContinuousClock.now - start) / .seconds(1)) + 1
            #expect((1...seconds).contains(log.count))
            #expect(try await log.next()["path"] == "/*")
        }
    }

    /// A range without a limit keeps the keys of all children that it selects.
    @Test func windowsOfQueriesCount() async throws {
        try await RunningMessages.with(change: { $0.limits.listenersClientBytesMax = Self.oneLong }) { running in
            let (client, admin) = (running.user("a"), running.administrator)
            func child(_ number: Int) -> String { "\(number)" + String(repeating: "k", count: 700) }
            func listen(_ start: Double) -> Messages.Listen {
                let bound = TreeQuery.Cut(SortValue(TreeNode.leaf(.number(start))), .beforeAll)
                return Messages.Listen(path: "/q", query: TreeQuery(order: .value, start: bound))
            }
            var values: JSONObject = [:]
            for number in 0..<20 { values[child(number)] = .number(Double(number)) }
            _ = try await admin.call(Messages.Set(path: "/q", value: .object(values)))
            var events = EventReader(try await client.subscribe(listen(0)))
            _ = try await events.next()
            #expect(await refusal { try await client.subscribe(listen(-1)) }?.reason == "too_many_listeners")
            let other = try await running.user("b").subscribe(listen(-1))
            // It outgrows the limit.
            values = [:]
            for number in 20..<60 { values[child(number)] = .number(Double(number)) }
            _ = try await admin.call(Messages.Update(path: "/q", values: values))
            #expect(try await events.nextNotification()?.method == Messages.Cancelled.method)
            #expect(events.last?.params["reason"] == "too_big")
            let short = try await client.subscribe(Messages.Listen(path: "/short"))
            withExtendedLifetime((other, short)) {}
        }
    }

    // MARK: By value

    @Test func textsOfPathsBoundsAndClaimsCount() throws {
        let long = String(repeating: "x", count: 700)
        let short = TopicKey(database: DatabaseID(rawValue: 1), path: "/a")
        let cost = ListenerCost.bytes(of: short)
        #expect(
            ListenerCost.bytes(of: TopicKey(database: DatabaseID(rawValue: 1), path: try TreePath("/\(long)"))) >= cost
                + 700)
        let bound = TreeQuery.Cut(.null, .after(try TreeKey(long)))
        for query in [
            TreeQuery(order: .key, start: bound), TreeQuery(order: .key, end: bound),
            TreeQuery(order: .child(try TreePath("/\(long)"))),
        ] {
            #expect(
                ListenerCost.bytes(of: TopicKey(database: DatabaseID(rawValue: 1), path: "/a", query: query)) >= cost
                    + 700)
        }
        let user = Caller.User(uid: "a", claims: ["roles": [.string(long), .string(long)]])
        #expect(ListenerCost.bytes(of: Caller.user(user)) >= 1_400)
        var reads = RulesReadSet()
        reads.insert(RulesRead(path: try TreePath("/\(long)"), aspect: .value))
        #expect(ListenerCost.bytes(of: reads) >= 700)
    }
}

extension ListenerRegistry {
    /// Counts anew what the listeners take, and compares.
    func checkBytes(of clients: [String]) throws {
        let all = Array(listeners.values)
        let topics = Dictionary(all.map { ($0.topic.id, $0.topic.byteCount) }) { first, _ in first }.values.reduce(0, +)
        let rights = Dictionary(all.compactMap(\.authorisation).map { ($0.id, $0) }) { first, _ in first }.values
        let reads = rights.reduce(0) { $0 + ListenerCost.authorisation + ListenerCost.bytes(of: $1.reads) }
        let callers = Set(rights.map(\.key.caller)).reduce(0) { $0 + ListenerCost.bytes(of: $1) }
        let bytes = all.count * ListenerCost.listener + topics + reads + callers
        guard bytes == listenerBytes, totals.count == all.count else {
            throw HistoryFailure("\(all.count) listeners take \(bytes) bytes, and \(listenerBytes) are counted")
        }
        for client in clients {
            let held = all.filter { $0.opening.client == client }.reduce(0) { $0 + $1.charge }
            guard held == totals.bytes(of: client) else {
                throw HistoryFailure("\(client) has \(held) bytes, and \(totals.bytes(of: client)) are counted")
            }
        }
    }
}
