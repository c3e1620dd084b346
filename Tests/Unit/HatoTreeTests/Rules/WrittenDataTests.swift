import HatoModel
import HatoRules
import HatoTesting
import Testing

@testable import HatoTree

/// The data of rules, stored and with a write laid over it, compared with whole nodes.
struct WrittenDataTests {
    private static let keys = ["a", "b", "c", "1", "01", "é"]

    @Test func randomWritesAreSeenLikeWholeNodes() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        for round in 0..<2_000 {
            let tree = MemoryTree()
            let before = try TreeNode(json: Self.value(depth: 4, &random))
            try tree.set("/", before.export)
            let targets = try Self.targets(&random)
            let after = before.setting(targets)
            let stored = StoredData(tree.rows, codec: tree.codec)
            let written = WrittenData(targets, over: stored)
            for _ in 0..<12 {
                let path = try TreePath(keys: Self.path(0...4, &random).map { try TreeKey($0) })
                try compare(stored, before, path, "seed \(seed), round \(round): stored \(path) of \(before.export)")
                try compare(
                    written, after, path,
                    "seed \(seed), round \(round): \(path) of \(before.export) with \(targets.map { "\($0.path): \($0.node.export)" })"
                )
            }
        }
    }

    private func compare(_ data: some RulesData, _ node: TreeNode, _ path: TreePath, _ message: String) throws {
        #expect(try data.leaf(at: path) == node.leaf(at: path), "leaf: \(message)")
        #expect(try data.exists(at: path) == node.exists(at: path), "exists: \(message)")
        #expect(try data.hasChildren(at: path) == node.hasChildren(at: path), "children: \(message)")
        #expect(try data.priority(at: path) == node.priority(at: path), "priority: \(message)")
    }

    /// A verdict of rules holds as long as no commit affects its reads.
    @Test func readsAreTouchedWhenTheirResultChanges() throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        var untouched = 0
        for round in 0..<2_000 {
            let tree = MemoryTree()
            let before = try TreeNode(json: Self.value(depth: 4, &random))
            try tree.set("/", before.export)
            var values = JSONObject()
            for target in try Self.targets(&random) where !target.path.isRoot {
                values.append(String(target.path.text.dropFirst()), target.node.export)
            }
            let plan = try tree.update("/", values)
            let after = try tree.nodes.node(at: .root)
            for _ in 0..<12 {
                let path = try TreePath(keys: Self.path(0...4, &random).map { try TreeKey($0) })
                for aspect in [RulesRead.Aspect.value, .existence, .children, .priority] {
                    let isTouched = plan.changes.contains { RulesRead(path: path, aspect: aspect).isTouched(by: $0) }
                    let isSame = Self.text(before, path, aspect) == Self.text(after, path, aspect)
                    if !isTouched { untouched += 1 }
                    #expect(
                        isSame || isTouched,
                        "seed \(seed), round \(round): \(aspect) of \(path), \(before.export) with \(values)")
                }
            }
        }
        #expect(untouched > 10_000)
    }

    @Test func aNewMessageDoesNotTouchWhetherItsChatExists() throws {
        let tree = MemoryTree()
        try tree.set("/chats/c1", ["title": "a", "messages": ["m1": "x"]])
        let change = try #require(try tree.set("/chats/c1/messages/m2", "y").changes.first)
        let chat = try TreePath("/chats/c1")
        for aspect in [RulesRead.Aspect.value, .existence, .children, .priority] {
            #expect(!RulesRead(path: chat, aspect: aspect).isTouched(by: change))
        }
        let message = try TreePath("/chats/c1/messages/m2")
        #expect(RulesRead(path: message, aspect: .existence).isTouched(by: change))
        #expect(!RulesRead(path: try TreePath("/chats/c2"), aspect: .value).isTouched(by: change))
    }

    /// The rules of a node above the targets ask about it once for each of them.
    @Test func whatIsLeftAboveManyTargetsIsFoundOutOnce() throws {
        let tree = MemoryTree()
        let removed = (1_000..<1_500).map { "a\($0)" }
        var values = JSONObject()
        for key in removed + ["z"] { values[key] = 1 }
        try tree.set("/u", .object(values))
        let rows = CountedRows(tree.rows)
        let targets = try removed.map { RulesTarget(path: try TreePath("/u/\($0)"), node: .empty) }
        let written = WrittenData(targets, over: StoredData(rows, codec: tree.codec))
        for _ in targets {
            #expect(try written.exists(at: TreePath("/u")))
            #expect(try written.hasChildren(at: TreePath("/u")))
        }
        #expect(rows.visited <= removed.count + 1)
    }

    private static func text(_ node: TreeNode, _ path: TreePath, _ aspect: RulesRead.Aspect) -> String {
        switch aspect {
        // The result of `val()`: it changes when children come or go.
        case .value: "\(String(describing: node.leaf(at: path))), \(node.hasChildren(at: path))"
        case .existence: "\(node.exists(at: path))"
        case .children: "\(node.hasChildren(at: path))"
        case .priority: "\(String(describing: node.priority(at: path)))"
        }
    }

    /// Some places, none at or above another.
    private static func targets(_ random: inout SeededRandom) throws -> [RulesTarget] {
        var targets: [RulesTarget] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let isPriority = Int.random(in: 0..<6, using: &random) == 0
            let text = path(1...4, &random).joined(separator: "/") + (isPriority ? "/.priority" : "")
            let path = try TreePath(text)
            let isApart = targets.allSatisfy { other in
                !other.path.isAtOrAbove(path.node) && !path.isAtOrAbove(other.path.node)
                    || path.isPriority
                        && other.path.node != path.node && !other.path.isAtOrAbove(path.node)
            }
            guard isApart, !targets.contains(where: { $0.path == path }) else { continue }
            let node: TreeNode =
                if isPriority { Bool.random(using: &random) ? .leaf(.number(2)) : .empty } else {
                    Bool.random(using: &random) ? .empty : try TreeNode(json: value(depth: 2, &random))
                }
            targets.append(RulesTarget(path: path, node: node))
        }
        return targets
    }

    private static func path(_ depths: ClosedRange<Int>, _ random: inout SeededRandom) -> [String] {
        (0..<Int.random(in: depths, using: &random)).map { _ in keys.randomElement(using: &random) ?? "a" }
    }

    private static func value(depth: Int, _ random: inout SeededRandom) -> JSONValue {
        if depth == 0 || Int.random(in: 0..<4, using: &random) == 0 {
            let leaf: JSONValue = [nil, true, 1, "x"].randomElement(using: &random) ?? nil
            guard !leaf.isNull, Int.random(in: 0..<5, using: &random) == 0 else { return leaf }
            return [".value": leaf, ".priority": 7]
        }
        var object = JSONObject()
        if Int.random(in: 0..<5, using: &random) == 0 { object[".priority"] = "p" }
        for key in keys where Int.random(in: 0..<3, using: &random) == 0 {
            object[key] = value(depth: depth - 1, &random)
        }
        return .object(object)
    }
}

/// Counts the rows that scans visit.
private final class CountedRows: TreeReader {
    private let rows: MemoryRows
    private(set) var visited = 0

    init(_ rows: MemoryRows) { self.rows = rows }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try rows.get(key) }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        try rows.scan(lower: lower, upper: upper, reverse: reverse) { key, value in
            visited += 1
            return try visit(key, value)
        }
    }
}
