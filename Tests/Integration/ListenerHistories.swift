import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Synchronization
import Testing

/// Random histories against the running service: every notification of every listener must show the tree at its
/// version, for nodes and for queries, also after listening again from a position.
@Suite(.timeLimit(.minutes(10)))
struct ListenerHistories {
    static let seed = SeededRandom.seed(of: "histories of listeners")

    static let rules = """
        {"rules": {"c": {"$room": {".indexOn": ["date", "author/name", ".value"]}}}}
        """

    static let fewerRules = """
        {"rules": {"c": {"$room": {".indexOn": "author/name"}, "b": {}}}}
        """

    @Test(arguments: [seed])
    func everyNotificationShowsTheTreeAtItsVersion(seed: UInt64) async throws {
        try await TestStack.run { stack in
            let admin = stack.client(.messages, as: .administrator)
            _ = try await admin.call(Messages.Rules.Set(rules: Self.rules))
            try await eventually("the indexes are ready") {
                try await admin.call(Messages.Indexes.List()).allSatisfy { $0.state == .ready }
            }
            let history = try await Self.run(stack, seed)
            let states = try history.states()
            let final = try #require(states.last)
            let read = try await admin.call(Messages.Get(path: try TreePath("/c"), form: .export))
            #expect(try TreeNode(json: read.value) == final.node.node(at: TreePath("/c")), "seed \(seed)")
            #expect(
                history.listeners.reduce(0) { $0 + $1.seen.count } > 200,
                "seed \(seed): too little was heard to prove anything")
            for listener in history.listeners {
                for seen in listener.seen {
                    let node = states.last { $0.version <= seen.version }?.node ?? .empty
                    let expected = listener.view(of: node)
                    try #require(seen.value == expected, "seed \(seed), \(listener.name) at version \(seen.version)")
                }
                #expect(
                    listener.seen.last?.value == listener.view(of: final.node),
                    "seed \(seed), \(listener.name) at the end")
            }
            for query in history.queries {
                let node = states.last { $0.version <= query.version }?.node ?? .empty
                let keys = try query.query.select(from: node.node(at: query.path)).map(\.key.text)
                try #require(query.keys == keys, "seed \(seed), \(query.query.json) at \(query.path)")
            }
        }
    }

    /// Two writers, readers and listeners at once.
    private static func run(_ stack: TestStack, _ seed: UInt64) async throws -> History {
        try await withThrowingTaskGroup(of: History.self) { group in
            let end = Writers()
            for writer in 0..<2 {
                group.addTask {
                    let client = stack.client(.messages, as: .administrator)
                    return try await RandomWriter(random: SeededRandom(seed: seed &+ UInt64(writer))).run(
                        client, 200, end)
                }
            }
            group.addTask {
                let client = stack.client(.messages, as: .administrator)
                // Listeners continue when their index is removed and built again.
                var turn = 0
                while await !end.isOver {
                    turn += 1
                    _ = try await client.call(Messages.Rules.Set(rules: turn % 2 == 0 ? Self.rules : Self.fewerRules))
                    // The writers make progress with these rules before the next ones are set.
                    let next = try await client.call(Messages.Stats()).version + 20
                    try await eventually("the writers get on") {
                        if await end.isOver { return true }
                        return try await client.call(Messages.Stats()).version >= next
                    }
                }
                return History()
            }
            for listener in 0..<16 {
                group.addTask {
                    var random = SeededRandom(seed: seed &+ 100 &+ UInt64(listener))
                    let client = stack.client(.messages, as: .administrator)
                    let listener = try RandomListener(index: listener, using: &random)
                    return History(listeners: [try await listener.run(client, end, random)])
                }
            }
            var history = History()
            for try await part in group { history.add(part) }
            return history
        }
    }
}

/// The recorded operations.
struct History: Sendable {
    struct Write: Sendable {
        var version: UInt64
        /// Order within a writer: a write that changes nothing returns the version of the state it found.
        var changes: [(path: TreePath, value: JSONValue)]
    }

    struct Query: Sendable {
        var version: UInt64
        var path: TreePath
        var query: TreeQuery
        var keys: [String]
    }

    var writes: [Write] = []
    var queries: [Query] = []
    var listeners: [RandomListener] = []

    mutating func add(_ other: History) {
        writes += other.writes
        queries += other.queries
        listeners += other.listeners
    }

    /// The tree after every version.
    func states() throws -> [(version: UInt64, node: TreeNode)] {
        var node = TreeNode.empty
        var states: [(version: UInt64, node: TreeNode)] = []
        for write in writes.sorted(by: { $0.version < $1.version }) {
            var next = node
            for change in write.changes { next = next.setting(try TreeNode(json: change.value), at: change.path) }
            // Two writes may return one version only if all but one of them change nothing.
            if next == node { continue }
            node = next
            states.append((write.version, node))
        }
        return states
    }
}

/// Reports when all writers are done.
actor Writers {
    private var writers = 2

    func ended() { writers -= 1 }

    var isOver: Bool { writers == 0 }
}

/// Writes at random, sends queries in between, and records its operations.
struct RandomWriter {
    var random: SeededRandom

    private static let keys = ["a", "b", "m1", "m2", "10", "9", "鳩", "🕊", "text"]

    /// Some writes one by one, some many at once, so that they share syncs.
    func run(_ client: RPCClient, _ count: Int, _ end: Writers) async throws -> History {
        var writer = self
        var history = History()
        while history.writes.count < count {
            let writes = try (0..<writer.random.pick([1, 1, 1, 8])).map { _ in try writer.write() }
            history.writes += try await withThrowingTaskGroup(of: History.Write.self) { group in
                for write in writes { group.addTask { try await write(client) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            if writer.random.chance(1, in: 3), let query = try await writer.query(client) {
                history.queries.append(query)
            }
        }
        await end.ended()
        return history
    }

    private typealias Write = @Sendable (RPCClient) async throws -> History.Write

    private mutating func write() throws -> Write {
        let path = try path()
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            let value = message()
            return { client in
                let pushed = try await client.call(Messages.Push(path: try TreePath("/c/a"), value: value))
                let place = try TreePath("/c/a").child(TreeKey(pushed.key))
                return History.Write(version: pushed.version, changes: [(place, value)])
            }
        case 4..<7:
            let value = random.chance(1, in: 6) ? JSONValue.number(5) : message()
            return { client in
                let result = try await client.call(Messages.Set(path: path, value: value))
                return History.Write(version: result.version, changes: [(path, value)])
            }
        case 7:
            return { client in
                let result = try await client.call(Messages.Remove(path: path))
                return History.Write(version: result.version, changes: [(path, .null)])
            }
        default:
            return try update()
        }
    }

    private mutating func update() throws -> Write {
        var values: JSONObject = [:]
        var changes: [(path: TreePath, value: JSONValue)] = []
        for name in ["a/m1/date", "a/m2", "b/m1", "b/10/text"] where random.chance(1, in: 2) {
            let number = Double(Int.random(in: 0...9, using: &random))
            let value: JSONValue = random.chance(1, in: 4) ? .null : .number(number)
            values[name] = value
            changes.append((try TreePath("/c/\(name)"), value))
        }
        return { [values, changes] client in
            let result = try await client.call(Messages.Update(path: try TreePath("/c"), values: values))
            return History.Write(version: result.version, changes: changes)
        }
    }

    private mutating func path() throws -> TreePath {
        var text = "/c"
        if random.chance(1, in: 40) { return try TreePath(text) }
        text += random.pick(["/a", "/b"])
        if random.chance(1, in: 25) { return try TreePath(text) }
        text += "/" + random.pick(Self.keys)
        if random.chance(1, in: 2) { text += "/" + random.pick(["date", "author", "author/name", "text"]) }
        if random.chance(1, in: 10) { text += "/" + random.pick(Self.keys) }
        return try TreePath(text)
    }

    private mutating func message() -> JSONValue {
        var message: JSONObject = ["text": .string(random.pick(["ただいま", "おかえり", ""]))]
        if random.chance(4, in: 5) { message["date"] = .number(Double(Int.random(in: 0...20, using: &random))) }
        if random.chance(1, in: 2) { message["author"] = ["name": .string(random.pick(["マスオ", "カツオ", "🕊"]))] }
        if random.chance(1, in: 8) { message[".priority"] = .number(Double(Int.random(in: 0...3, using: &random))) }
        return .object(message)
    }

    /// Nil while the rules have no index for it.
    private mutating func query(_ client: RPCClient) async throws -> History.Query? {
        let path = try TreePath(random.pick(["/c/a", "/c/b"]))
        let query = try RandomListener.query(using: &random)
        do {
            let result = try await client.call(Messages.Get(path: path, query: query))
            return History.Query(version: result.version, path: path, query: query, keys: result.keys ?? [])
        } catch let error as RPCError where error.code == .failedPrecondition {
            return nil
        }
    }
}

/// Listens, folds its events, and records its state at each version.
struct RandomListener: Sendable {
    let path: TreePath
    let query: TreeQuery?
    let coalesceMs: Int?
    var seen: [(version: UInt64, value: TreeNode)] = []

    init(index: Int, using random: inout SeededRandom) throws {
        path = try TreePath(random.pick(["/c", "/c/a", "/c/a", "/c/b", "/c/a/m1", "/c/b/m1/date"]))
        let isCollection = path.depth == 2
        query = isCollection && index % 4 != 0 ? try Self.query(using: &random) : nil
        coalesceMs = random.chance(1, in: 4) ? 20 : nil
    }

    static func query(using random: inout SeededRandom) throws -> TreeQuery {
        let order = random.pick(["date", "date", "author/name", "$key", "$value", "$priority"])
        var json: JSONObject = ["orderBy": .string(order)]
        switch order {
        case "date", "$value", "$priority":
            if random.chance(1, in: 3) {
                json[random.pick(["startAt", "startAfter"])] = .number(Double(Int.random(in: 0...9, using: &random)))
            }
            if random.chance(1, in: 3) {
                json[random.pick(["endAt", "endBefore"])] = .number(Double(Int.random(in: 8...20, using: &random)))
            }
        case "author/name":
            if random.chance(1, in: 2) { json["equalTo"] = .string(random.pick(["マスオ", "🕊"])) }
        default:
            if random.chance(1, in: 2) { json["startAt"] = .string(random.pick(["", "10", "m1", "🕊"])) }
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0: break
        case 1: json["limitToFirst"] = .number(Double(Int.random(in: 1...5, using: &random)))
        default: json["limitToLast"] = .number(Double(Int.random(in: 1...5, using: &random)))
        }
        return try TreeQuery(.object(json))
    }

    var name: String { "\(query.map { "\($0.json)" } ?? "everything") at \(path)" }

    /// The expected state for a tree.
    func view(of tree: TreeNode) -> TreeNode { selected(from: tree.node(at: path)) }

    private func selected(from node: TreeNode) -> TreeNode {
        query.map { .object(unsorted: $0.select(from: node)) } ?? node
    }

    /// Listens until all writers are done and the state is complete; sometimes from the beginning, sometimes from its
    /// position.
    func run(_ client: RPCClient, _ end: Writers, _ random: SeededRandom) async throws -> RandomListener {
        var listener = self
        var random = random
        let sight = Sight(query)
        var resume: Messages.Listen.Resume?
        while true {
            var request = Messages.Listen(path: path, query: query, resume: resume)
            request.coalesceMs = coalesceMs
            let subscription = try await client.subscribe(request)
            let opened = try Messages.Listen.decodeResult(.object(subscription.result))
            let patience = Int.random(in: 1...40, using: &random)
            let isOver = try await withThrowingTaskGroup(of: Bool.self) { group in
                group.addTask { try await sight.watch(subscription, patience) }
                group.addTask { try await self.waitForTheEnd(sight, client, end) }
                defer { group.cancelAll() }
                return try await group.next() ?? true
            }
            subscription.cancel()
            if isOver { break }
            if random.chance(1, in: 3) {
                resume = nil
                sight.forget()
            } else {
                resume = Messages.Listen.Resume(since: max(sight.version, opened.version), epoch: opened.epoch)
            }
        }
        listener.seen = sight.seen
        return listener
    }

    /// Returns true when all writers are done and the listener has the last state, or did not get it in time.
    private func waitForTheEnd(_ sight: Sight, _ client: RPCClient, _ end: Writers) async throws -> Bool {
        try await eventually("the writers are done") { await end.isOver }
        let read = try await client.call(Messages.Get(path: path, form: .export))
        let last = selected(from: try TreeNode(json: read.value))
        try await eventually("\(name) has seen all") { sight.node == last }
        return true
    }
}

/// The state of a listener so far.
final class Sight: Sendable {
    private struct State {
        var reducer: ChildEventReducer
        var version: UInt64 = 0
        var seen: [(version: UInt64, value: TreeNode)] = []
    }

    private let state: Mutex<State>
    private let query: TreeQuery

    init(_ query: TreeQuery?) {
        self.query = query ?? TreeQuery()
        state = Mutex(State(reducer: ChildEventReducer(self.query)))
    }

    var node: TreeNode { state.withLock { $0.reducer.node } }
    var version: UInt64 { state.withLock { $0.version } }
    var seen: [(version: UInt64, value: TreeNode)] { state.withLock { $0.seen } }

    func forget() {
        state.withLock { $0.reducer = ChildEventReducer(query) }
    }

    /// Applies so many notifications; returns false.
    func watch(_ subscription: RPCSubscription, _ patience: Int) async throws -> Bool {
        var count = 0
        for try await event in subscription {
            guard event.method == Messages.Event.method else {
                throw RPCError.unavailable(reason: "cancelled", "\(event.params)")
            }
            let notification = try Messages.Event.decode(event.params)
            try state.withLock { state in
                _ = try state.reducer.apply(notification.events)
                state.version = notification.version
                state.seen.append((notification.version, state.reducer.node))
            }
            count += 1
            if count >= patience { return false }
        }
        return false
    }
}

extension SeededRandom {
    mutating func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < one }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &self)]
    }
}
