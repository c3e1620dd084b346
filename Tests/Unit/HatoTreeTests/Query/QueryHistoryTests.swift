import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

/// Random histories: after any write, indexes, queries and listeners agree with the plain tree.
@Suite struct QueryHistoryTests {
    static let rules = """
        {"rules": {
          "c": {
            "$room": {".indexOn": ["a", "b/a", ".value"], "$x": {".indexOn": "a"}},
            "b": {".indexOn": "b/a"},
          },
          ".indexOn": ["a", ".value"],
        }}
        """
    static let otherRules = """
        {"rules": {"c": {".indexOn": ["a", ".value"], "$room": {".indexOn": ["a", "b/a"]}, "é": {}}}}
        """

    static var seeds: [UInt64] {
        let first = SeededRandom.seed(of: "histories of queries")
        return (0..<6).map { first &+ $0 }
    }

    @Test(arguments: seeds)
    func indexesAndQueriesAgreeWithThePlainTree(seed: UInt64) throws {
        var history = RandomHistory(seed)
        try history.tree.adopt(Self.rules)
        for step in 0..<250 {
            try history.write()
            if step % 60 == 40 { try history.tree.adopt(history.random.pick([Self.rules, Self.otherRules])) }
            _ = try history.tree.buildPage()
            if history.tree.catalog.building == nil {
                let expected = history.tree.expectedIndexRows(history.tree.catalog.definitions)
                try #require(history.tree.indexRows == expected, "seed \(seed), step \(step)")
            }
            for _ in 0..<15 { try history.compareQuery("seed \(seed), step \(step)") }
        }
    }

    @Test(arguments: seeds)
    func listenersOfQueriesSeeWhatTheQuerySees(seed: UInt64) throws {
        var history = RandomHistory(seed)
        try history.tree.adopt(Self.rules)
        try history.tree.build()
        var listeners: [WindowClient] = []
        for step in 0..<250 {
            var changes: [PathChange] = []
            for _ in 0..<history.random.pick([1, 1, 1, 2, 3]) { changes += try history.write() }
            for index in listeners.indices {
                try listeners[index].hear(changes, history.tree)
                let problem = listeners[index].problem(history.tree)
                try #require(
                    problem == nil, "seed \(seed), step \(step): \(problem ?? "") after \(changes.map(\.text))")
            }
            if listeners.count > 12 { listeners.removeFirst() }
            listeners.append(try WindowClient(history.data.query(), at: history.collection(), history.tree))
        }
    }

    /// Of this many children windows keep only those at one end, and must read more when those have left.
    @Test(arguments: seeds)
    func windowsThatRunOutAreFilledWithTheNextChildren(seed: UInt64) throws {
        var history = RandomHistory(seed)
        try history.tree.adopt(Self.rules)
        try history.tree.build()
        let room = try TreePath("/c/a")
        let names = RandomTree.keys + (100..<140).map { "k\($0)" }
        var listeners: [WindowClient] = []
        for step in 0..<300 {
            let fills = step / 50 % 2 == 0
            var changes: [PathChange] = []
            for _ in 0..<history.random.pick([1, 1, 2, 5, 20]) {
                let child = TreePath(uncheckedKeys: room.keys + [TreeKey(unchecked: history.random.pick(names))])
                let goes = history.random.chance(fills ? 1 : 4, in: 5)
                let value = goes ? JSONValue.null : history.data.value(depth: 1)
                changes += try history.tree.apply(.set(value, at: child))
            }
            for index in listeners.indices {
                try listeners[index].hear(changes, history.tree)
                let problem = listeners[index].problem(history.tree)
                try #require(problem == nil, "seed \(seed), step \(step): \(problem ?? "")")
            }
            if listeners.count > 12 { listeners.removeFirst() }
            if step % 5 == 0 { listeners.append(try WindowClient(history.data.query(), at: room, history.tree)) }
        }
    }

    /// Each event of commits that become durable together leads to a state that one of them made, in their order.
    @Test(arguments: seeds)
    func commitsOfOneSyncAreNeverSplit(seed: UInt64) throws {
        var history = RandomHistory(seed)
        try history.tree.adopt(Self.rules)
        try history.tree.build()
        let room = try TreePath("/c/a")
        let names = RandomTree.keys + (100..<112).map { "k\($0)" }
        var listeners: [WindowClient] = []
        var earlierEvents = 0
        for step in 0..<200 {
            var commits: [[PathChange]] = []
            var states: [TreeNode] = []
            for _ in 0..<history.random.pick([1, 2, 3, 4, 40]) {
                var values: JSONObject = [:]
                for _ in 0..<history.random.pick([1, 1, 1, 2]) {
                    values[history.random.pick(names)] =
                        history.random.chance(1, in: 3) ? .null : history.data.value(depth: 1)
                }
                commits.append(try history.tree.apply(.update(values, at: room)))
                states.append(history.tree.model.node(at: room))
            }
            for index in listeners.indices {
                earlierEvents += try listeners[index].hear(commits: commits, states, history.tree)
                let problem = listeners[index].problem(history.tree)
                try #require(problem == nil, "seed \(seed), step \(step): \(problem ?? "")")
            }
            if listeners.count > 12 { listeners.removeFirst() }
            if step % 5 == 0 { listeners.append(try WindowClient(history.data.query(), at: room, history.tree)) }
        }
        #expect(earlierEvents > 0)
    }

    @Test(arguments: seeds)
    func listenersOfNodesSeeWhatTheTreeHolds(seed: UInt64) throws {
        var history = RandomHistory(seed)
        var listeners: [NodeClient] = []
        for step in 0..<400 {
            let changes = try history.write()
            for index in listeners.indices {
                let isBehind = history.random.chance(1, in: 3)
                try listeners[index].hear(changes, history.tree, isBehind: isBehind)
                let problem = isBehind ? nil : listeners[index].problem(history.tree)
                try #require(
                    problem == nil, "seed \(seed), step \(step): \(problem ?? "") after \(changes.map(\.text))")
            }
            if listeners.count > 12 { listeners.removeFirst() }
            listeners.append(NodeClient(at: history.path(), history.tree))
        }
    }
}

/// A tree that changes at random.
struct RandomHistory {
    var tree = IndexedTree()
    var data: RandomTree
    var random: SeededRandom {
        get { data.random }
        set { data.random = newValue }
    }

    init(_ seed: UInt64) { data = RandomTree(random: SeededRandom(seed: seed)) }

    mutating func collection() -> TreePath {
        let c = TreeKey(unchecked: "c")
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return .root
        case 1: return TreePath(uncheckedKeys: [c])
        case 2: return TreePath(uncheckedKeys: [c, data.key(), data.key()])
        default: return TreePath(uncheckedKeys: [c, TreeKey(unchecked: random.pick(["a", "b", "é"]))])
        }
    }

    mutating func path() -> TreePath {
        var keys = collection().keys
        for _ in 0..<random.pick([0, 0, 1, 1, 1, 2, 2, 3]) {
            keys.append(random.chance(1, in: 3) ? TreeKey(unchecked: "a") : data.key())
        }
        return TreePath(uncheckedKeys: keys)
    }

    @discardableResult
    mutating func write() throws -> [PathChange] {
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<10:
            let path = path()
            if path.isRoot, random.chance(9, in: 10) { return [] }
            return try tree.apply(.set(data.value(depth: max(1, 4 - path.depth)), at: path))
        case 10..<13:
            let path = path()
            if path.depth < 2, random.chance(2, in: 3) { return [] }
            return try tree.apply(.remove(at: path))
        case 13..<15:
            return try tree.apply(.setPriority(data.priority(), at: path()))
        default:
            var values: JSONObject = [:]
            var used: [TreePath] = []
            let base = random.chance(1, in: 2) ? TreePath.root : collection()
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                var sortKey = path()
                guard sortKey.depth > base.depth else { continue }
                sortKey = TreePath(
                    uncheckedKeys: Array(sortKey.keys.dropFirst(base.depth)), isPriority: random.chance(1, in: 6))
                let clashes = used.contains { $0.node.isAtOrAbove(sortKey.node) || sortKey.node.isAtOrAbove($0.node) }
                if clashes { continue }
                used.append(sortKey)
                let value = random.chance(1, in: 3) ? .null : data.value(depth: 1)
                values[String(sortKey.text.dropFirst())] = sortKey.isPriority ? data.priority() : value
            }
            if values.isEmpty { return [] }
            return try tree.apply(.update(values, at: base))
        }
    }

    mutating func compareQuery(_ comment: String) throws {
        let query = data.query()
        let path = collection()
        let expected = query.select(from: tree.model.node(at: path))
        let wanted = expected.map { query.sortKey(of: $0) }
        let plan = QueryPlan(query, at: path, in: tree.catalog)
        for plan in Set([plan, .everyChild]) {
            let sortKeys = try tree.runner.sortKeys(query, at: path, by: plan)
            try #require(sortKeys == wanted, "\(comment): \(query.json) at \(path) by \(plan)")
        }
        var writer = JSONWriter()
        try tree.runner.write(wanted, at: path, .export, to: &writer)
        var plain = JSONWriter()
        plain.write(JSONObject(uniqueMembers: expected.map { .init($0.key.text, $0.node.export) }))
        try #require(writer.bytes == plain.bytes, "\(comment): \(query.json) at \(path)")
        let rewritten = try TreeQuery(query.json)
        try #require(rewritten == query, "\(comment): \(query.json)")
    }
}

/// A state that was shown, and that no commit made.
struct SplitCommit: Error, CustomStringConvertible { let description: String }

/// A client that listens to a query.
struct WindowClient {
    var window: QueryWindow
    var client: ChildEventReducer
    /// The children according to the child events, in order.
    var children: [TreeKey: TreeNode] = [:]

    init(_ query: TreeQuery, at path: TreePath, _ tree: IndexedTree) throws {
        let plan = QueryPlan(query, at: path, in: tree.catalog)
        window = try QueryWindow(query, at: path, by: plan, reading: tree.runner)
        client = ChildEventReducer(query)
        try hear(.fresh, tree)
    }

    mutating func hear(_ changes: [PathChange], _ tree: IndexedTree) throws {
        try hear(window.apply(changes, reading: tree.runner), tree)
    }

    /// - Parameter states: of the collection, after each of the commits.
    /// - Returns: the number of events before the last one.
    mutating func hear(commits: [[PathChange]], _ states: [TreeNode], _ tree: IndexedTree) throws -> Int {
        let update = try window.apply(commits: commits, reading: tree.runner)
        guard case .events(let events) = update, events.count > 1 else {
            try hear(update, tree)
            return 0
        }
        var rest = states[...]
        for event in events {
            try hear(.events([event]), tree)
            let shown = client.children
            guard let index = rest.firstIndex(where: { window.query.select(from: $0) == shown }) else {
                throw SplitCommit(description: "\(window.query.json): \(shown.map(Self.text))")
            }
            rest = rest[index...]
        }
        return events.count - 1
    }

    private mutating func hear(_ update: ListenerUpdate, _ tree: IndexedTree) throws {
        switch update {
        case .nothing: return
        case .fresh:
            var writer = JSONWriter()
            let sortKeys = try window.sortKeys(reading: tree.runner)
            try tree.runner.write(sortKeys, at: window.path, .export, to: &writer)
            apply(try client.apply([.init(type: .put, path: "/", data: JSONParser.parse(writer.bytes))]))
        case .events(let events):
            apply(try client.apply(events.map { try $0.entry }))
        }
    }

    private mutating func apply(_ events: [ChildEvent]) {
        for event in events {
            switch event {
            case .removed(let key, _): children[key] = nil
            case .added(let key, let node, _), .changed(let key, let node, _): children[key] = node
            case .moved: break
            }
        }
    }

    private static func text(_ child: TreeChild) -> String { "\(child.key): \(child.node.text)" }

    func problem(_ tree: IndexedTree) -> String? {
        let expected = window.query.select(from: tree.model.node(at: window.path))
        let name = "\(window.query.json) at \(window.path)"
        if client.children != expected {
            let (heard, wanted) = (client.children.map(Self.text), expected.map(Self.text))
            return "\(name): \(heard) instead of \(wanted)"
        }
        if children != Dictionary(uniqueKeysWithValues: expected.map { ($0.key, $0.node) }) {
            return "\(name): child events"
        }
        return nil
    }
}

/// A client that listens to a node, and sometimes falls behind.
struct NodeClient {
    let path: TreePath
    var client = ChildEventReducer()
    var missed: ChangedPaths
    private var version: UInt64 = 0
    private var position: UInt64 = 0

    init(at path: TreePath, _ tree: IndexedTree) {
        self.path = path
        missed = ChangedPaths(of: path, after: 0)
        try? hear(.fresh, tree)
    }

    mutating func hear(_ changes: [PathChange], _ tree: IndexedTree, isBehind: Bool) throws {
        guard !isBehind, missed.missing(after: position) == .nothing else {
            version += 1
            missed.add(changes, at: version)
            if !isBehind {
                try hear(missed.paths(from: position + 1).update(reading: tree.nodes), tree)
                position = version
            }
            return
        }
        try hear(ListenerUpdate(of: changes, at: path), tree)
    }

    private mutating func hear(_ update: ListenerUpdate, _ tree: IndexedTree) throws {
        switch update {
        case .nothing: return
        case .fresh:
            let value = try tree.nodes.node(at: path).export
            _ = try client.apply([.init(type: .put, path: "/", data: value)])
        case .events(let events):
            _ = try client.apply(events.map { try $0.entry })
        }
    }

    func problem(_ tree: IndexedTree) -> String? {
        let expected = tree.model.node(at: path)
        return client.node == expected ? nil : "\(path): \(client.node.text) instead of \(expected.text)"
    }
}

extension ListenerEvent {
    /// The form in which it arrives at a client.
    var entry: Messages.Event.Entry {
        get throws {
            var writer = JSONWriter()
            write(to: &writer)
            return try Messages.Event.Entry(json: JSONParser.parse(writer.bytes), unknown: .rejected)
        }
    }
}

extension TreeNode {
    /// For messages: shortened, so that a difference is visible.
    fileprivate var text: String {
        var writer = JSONWriter()
        writer.write(export)
        return String(decoding: writer.bytes, as: UTF8.self).replacing(RandomTree.long, with: "…")
    }
}

extension PathChange {
    fileprivate var text: String {
        "\(path): \(before?.text ?? "?") → \(after?.text ?? "?") \(existedDepth) \(existsDepth)"
    }
}
