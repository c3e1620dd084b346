import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// Packed nodes: when a node is packed, how it is unpacked, and that readers do not notice.
@Suite struct PackedNodeTests {
    private static let message: JSONValue = ["date": 5, "senderId": "masuo", "text": "ただいま"]

    private static func tree(_ path: String = "/m", _ value: JSONValue = message) throws -> MemoryTree {
        let tree = MemoryTree()
        try tree.set(path, value)
        return tree
    }

    @Test func aNodeOfAFewSmallLeavesIsOneRow() throws {
        let tree = try Self.tree()
        #expect(tree.rows.count == 1)
        #expect(try tree.text("/") == #"{"m":{"date":5,"senderId":"masuo","text":"ただいま"}}"#)
        #expect(try tree.text("/m/text") == #""ただいま""#)
        #expect(try tree.text("/m/none") == "null")
        #expect(try tree.nodes.leaf(at: TreePath("/m")) == nil)
        #expect(try tree.nodes.exists(at: TreePath("/m/date")))
        #expect(try !tree.nodes.exists(at: TreePath("/m/date/x")))
        #expect(try tree.shallow("/m") == #"{"date":true,"senderId":true,"text":true}"#)
    }

    @Test func aWholeNewValueIsOneRowAgain() throws {
        let tree = try Self.tree()
        let plan = try tree.set("/m", ["date": 6, "read": true])
        #expect(plan.rows.count == 1)
        #expect(tree.rows.count == 1)
        #expect(try tree.text() == #"{"m":{"date":6,"read":true}}"#)
        try tree.set("/m", "leaf")
        #expect(tree.rows.count == 1)
        #expect(try tree.text() == #"{"m":"leaf"}"#)
    }

    @Test(
        arguments: [
            ["a": 1], ["a": ["b": 1], "c": 2], ["a": 1, "b": 2, ".priority": 3],
            ["a": 1, "b": [".value": 2, ".priority": 3]],
            .object(JSONObject(uniqueMembers: (0..<33).map { .init("k\($0)", true) })),
            ["a": 1, "b": .string(String(repeating: "x", count: 2_048))],
        ] as [JSONValue])
    func otherNodesHaveARowForEachLeafAndPriority(value: JSONValue) throws {
        let tree = try Self.tree("/n", value)
        let node = try tree.nodes.node(at: TreePath("/n"))
        var priorities = 0
        for key in tree.rows.keys where tree.codec.path(of: key.span)?.isPriority == true { priorities += 1 }
        #expect(tree.rows.count == node.leafCount + priorities)
        #expect(try tree.export("/n") == value)
    }

    @Test(
        arguments: [
            ("/m/date", 6, #"{"date":6,"senderId":"masuo","text":"ただいま"}"#, 3),
            ("/m/text", .null, #"{"date":5,"senderId":"masuo"}"#, 2),
            ("/m/zzz", 1, #"{"date":5,"senderId":"masuo","text":"ただいま","zzz":1}"#, 4),
            ("/m/date/year", 2026, #"{"date":{"year":2026},"senderId":"masuo","text":"ただいま"}"#, 3),
            ("/m/date/.priority", 1, #"{"date":5,"senderId":"masuo","text":"ただいま"}"#, 4),
            ("/m/.priority", "p", #"{"date":5,"senderId":"masuo","text":"ただいま"}"#, 4),
        ] as [(String, JSONValue, String, Int)])
    func writeToAPartUnpacksIt(path: String, value: JSONValue, text: String, rows: Int) throws {
        let tree = try Self.tree()
        try tree.set(path, value)
        #expect(try tree.text("/m") == text)
        #expect(tree.rows.count == rows)
        try tree.set(path, .null)
        #expect(
            try tree.nodes.node(at: TreePath("/m")).leafCount == (path.hasSuffix("priority") ? 3 : rows > 3 ? 3 : 2))
    }

    @Test func severalWritesInOneUpdateUnpackItOnce() throws {
        let tree = try Self.tree()
        try tree.update("/m", ["date": 6, "text": .null, "x/y": 1, "senderId/.priority": 2])
        #expect(try tree.export("/m") == ["date": 6, "senderId": [".value": "masuo", ".priority": 2], "x": ["y": 1]])
        #expect(tree.rows.count == 4)
    }

    @Test func pushIntoAPackedNodeUnpacksIt() throws {
        let tree = try Self.tree()
        let planner = WritePlanner(codec: tree.codec, cache: NodeCache())
        for milliseconds: Int64 in [1_700_000_000_000, 1_700_000_000_001] {
            let key = PushKey(milliseconds: milliseconds, random: (1, 2))
            let push = Mutation.push(["a": 1, "b": 2], at: try TreePath("/m"), key: key)
            try planner.plan(push, reading: tree.rows, at: 1).rows.apply(to: tree.rows)
        }
        #expect(tree.rows.count == 3 + 2)
        #expect(try tree.nodes.node(at: TreePath("/m")).leafCount == 3 + 4)
    }

    /// A plan made ahead contains the rows of the leaves at that time.
    @Test func writeBesideTouchesAPlanThatUnpacksTheNode() throws {
        let tree = try Self.tree()
        let resolved = try tree.planner.resolve(.set(6, at: TreePath("/m/date")), reading: tree.rows, at: 1)
        let ahead = try tree.planner.planAhead(resolved, reading: tree.rows)
        #expect(ahead.basis.isTouched(by: try tree.set("/m/text", "おかえり").changes))
        let again = try tree.planner.planAhead(resolved, reading: tree.rows)
        #expect(!again.basis.isTouched(by: try tree.set("/m/text", "やあ").changes))
    }

    /// A node that is too large to keep is deleted without being read.
    @Test func unreadReplacedNodesLeaveTheSameRows() throws {
        let seed = SeededRandom.seed()
        var random = RandomTree(random: SeededRandom(seed: seed))
        let (tree, other) = (MemoryTree(), MemoryTree())
        var forgetful = other.planner
        forgetful.beforeBytesMax = 30
        for step in 0..<4_000 {
            var path = TreePath.root
            for _ in 0..<random.random.pick([0, 1, 1, 2, 2]) { path = try path.child(random.key()) }
            var values = JSONObject()
            for _ in 0..<4 {
                let relative = random.random.pick([random.key().text, "\(random.key().text)/\(random.key().text)"])
                if values.members.contains(where: { $0.name.hasPrefix(relative) || relative.hasPrefix($0.name) }) {
                    continue
                }
                values[relative] = random.random.chance(1, in: 3) ? .null : random.value(depth: 2)
            }
            try tree.update(path.description, values)
            try forgetful.plan(.update(values, at: path), reading: other.rows, at: 1_000).rows.apply(to: other.rows)
            guard try tree.export() == other.export(), try Self.findings(other) == [] else {
                Issue.record("seed \(seed), step \(step): \(values) at \(path)")
                return
            }
        }
    }

    private static func findings(_ tree: MemoryTree) throws -> [String] {
        var found: [String] = []
        // No index of priorities is kept here.
        let check = TreeCheck(tree.rows, codec: tree.codec, indexCodec: IndexKeyCodec(prefix: [9])) {
            if !$0.isOfIndex { found.append($0.problem) }
        }
        _ = try check.run {}
        return found
    }

    @Test func checkFindsDamageInAPackedNode() throws {
        func findings(_ damage: (MemoryTree, [UInt8]) -> Void) throws -> [String] {
            let tree = try Self.tree()
            damage(tree, tree.codec.key(of: try TreePath("/m")))
            return try Self.findings(tree)
        }
        #expect(try findings { _, _ in } == [])
        for value: [UInt8] in [[4], [4, 97], [4, 97, 0, 1, 1]] {
            #expect(try findings { $0.rows.put($1.span, value.span) } == ["the values of the node cannot be read"])
        }
        #expect(
            try findings { $0.rows.put($1.span, [4, 98, 0, 1, 1, 97, 0, 1, 1].span) }
                == ["the values of the node are out of order"])
        #expect(try findings { $0.rows.put($1.span, [4, 97, 0, 1, 9, 98, 0, 1, 1].span) }.count == 1)
        #expect(
            try findings { $0.rows.put(($1 + [97, 0]).span, [1].span) } == ["there is a row of a node that is one row"])
    }
}

/// Scans over packed nodes, compared with scans over a row for each leaf.
@Suite struct TreeRowsTests {
    @Test func scansSeeTheRowsOfTheLeaves() throws {
        let seed = SeededRandom.seed()
        var random = RandomTree(random: SeededRandom(seed: seed))
        var packedCount = 0
        for round in 0..<400 {
            let tree = MemoryTree()
            for _ in 0..<6 { try tree.set("/", .object([random.key().text: random.value(depth: 3)]), at: &random) }
            let rows = TreeRows(tree.rows, codec: tree.codec)
            let plain = MemoryRows()
            for key in tree.rows.keys {
                let value = try #require(try tree.rows.get(key.span))
                guard PackedNode.isPacked(value.span) else {
                    plain.put(key.span, value.span)
                    continue
                }
                packedCount += 1
                for leaf in try PackedNode.leaves(in: value.span) {
                    let row = key + value[leaf.key]
                    plain.put(row.span, value.span.extracting(leaf.value))
                }
            }
            for key in plain.keys {
                #expect(try rows.get(key.span) == plain.get(key.span), "seed \(seed), round \(round)")
            }
            for _ in 0..<60 {
                let scan = RandomScan(of: plain, tree.codec, &random.random)
                #expect(try scan.run(rows) == scan.run(plain), "seed \(seed), round \(round): \(scan)")
            }
        }
        #expect(packedCount > 400, "seed \(seed)")
    }

    /// Bounds, a direction, and the seeks from visited rows.
    private struct RandomScan {
        private var lower: [UInt8]
        private var upper: [UInt8]?
        private var isReverse: Bool
        private var seeks: [Int: [UInt8]] = [:]
        private var stop: Int

        init(of rows: MemoryRows, _ codec: TreeKeyCodec, _ random: inout SeededRandom) {
            func place(_ random: inout SeededRandom) -> [UInt8] {
                var key = rows.keys.isEmpty ? codec.prefix : random.pick(rows.keys)
                switch Int.random(in: 0..<5, using: &random) {
                case 0: key = Array(key.prefix(Int.random(in: codec.prefix.count...key.count, using: &random)))
                case 1: key.append(random.pick([0, 1, 2, 0x61, 0xFF]))
                case 2: key = TreeKeyCodec.upperBound(of: key) ?? key
                case 3: key = key + Array("zz".utf8) + [0]
                default: break
                }
                return key.starts(with: codec.prefix) ? key : codec.prefix
            }
            lower = random.chance(1, in: 3) ? codec.prefix : place(&random)
            upper = random.chance(1, in: 3) ? nil : place(&random)
            isReverse = random.chance(1, in: 2)
            for _ in 0..<3 where random.chance(1, in: 2) {
                seeks[Int.random(in: 0..<6, using: &random)] = place(&random)
            }
            stop = random.pick([1, 2, 5, 1_000])
        }

        func run(_ rows: some TreeReader) throws -> [[UInt8]] {
            var seen: [[UInt8]] = []
            try rows.scan(lower: lower, upper: upper, reverse: isReverse) { key, value in
                let key = key.withUnsafeBufferPointer { Array($0) }
                seen.append(key + value.withUnsafeBufferPointer { Array($0) })
                if seen.count >= stop { return .stop }
                guard let target = seeks[seen.count - 1] else { return .next }
                let isAhead =
                    isReverse
                    ? target.lexicographicallyPrecedes(key) && !target.lexicographicallyPrecedes(lower)
                    : key.lexicographicallyPrecedes(target)
                return isAhead ? .seek(target) : .next
            }
            return seen
        }
    }
}

extension MemoryTree {
    /// Writes some of the children of a node as a whole, and some of their children one by one.
    fileprivate func set(_ path: String, _ value: JSONValue, at random: inout RandomTree) throws {
        let path = try TreePath(path)
        if random.random.chance(1, in: 2) {
            try apply(.set(value, at: path))
        } else if case .object(let object) = value {
            try apply(.update(object, at: path))
        }
    }
}
