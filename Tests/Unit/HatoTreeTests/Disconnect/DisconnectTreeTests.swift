import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

@Suite struct DisconnectTreeTests {
    /// The calls, and what is written at the end.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var calls: [Call]
        var written: JSONObject
    }

    enum Call: Sendable {
        case set(String, JSONValue, by: String = "a")
        case update(String, JSONObject)
        case cancel(String)
    }

    static let cases: [Case] = [
        Case("one place", [.set("/a/b", 1)], ["/a/b": 1]),
        Case("a later value replaces", [.set("/a", 1), .set("/a", 2)], ["/a": 2]),
        Case("a set above drops what is below", [.set("/a/b", 1), .set("/a/c/d", 2), .set("/a", 3)], ["/a": 3]),
        Case(
            "a set below is written into it", [.set("/a", ["x": 1]), .set("/a/b/c", 2)],
            ["/a": ["x": 1, "b": ["c": 2]]]),
        Case("a removal becomes a value", [.set("/a", nil), .set("/a/b", 1)], ["/a": ["b": 1]]),
        Case("a removal below", [.set("/a", ["x": 1, "y": 2]), .set("/a/x", nil)], ["/a": ["y": 2]]),
        Case(
            "the last child takes its parents along", [.set("/a", ["x": ["y": 1]]), .set("/a/x/y", nil)], ["/a": nil]),
        Case(
            "a leaf becomes an object", [.set("/a", [".value": 5, ".priority": 3]), .set("/a/b", 1)],
            ["/a": [".priority": 3, "b": 1]]),
        Case("nothing below a leaf changes nothing", [.set("/a", 5), .set("/a/b", nil)], ["/a": 5]),
        Case("an update sets each", [.update("/a", ["b": 1, "c/d": nil])], ["/a/b": 1, "/a/c/d": nil]),
        Case("an update spares its siblings", [.set("/a/x", 1), .update("/a", ["b": 1])], ["/a/b": 1, "/a/x": 1]),
        Case(
            "an array is an object", [.set("/a", ["p", nil, "q"]), .set("/a/1", "r")],
            ["/a": ["0": "p", "1": "r", "2": "q"]]),
        Case("a priority alone", [.set("/a/.priority", 1)], ["/a/.priority": 1]),
        Case(
            "a priority beside children", [.set("/a/.priority", 1), .set("/a/b", 2)], ["/a/.priority": 1, "/a/b": 2]),
        Case("a priority goes with its node", [.set("/a/.priority", 1), .set("/a", 2)], ["/a": 2]),
        Case(
            "a priority of a value", [.set("/a", 2), .set("/a/.priority", 1)], ["/a": [".value": 2, ".priority": 1]]),
        Case(
            "a priority taken from a value", [.set("/a", [".value": 2, ".priority": 1]), .set("/a/.priority", nil)],
            ["/a": 2]),
        Case("a priority of nothing", [.set("/a", nil), .set("/a/.priority", 1)], ["/a": nil]),
        Case("the whole tree", [.set("/a", 1), .set("/", nil), .set("/b", 2)], ["/": ["b": 2]]),
        Case(
            "server values stay", [.set("/a", ["n": [".sv": "timestamp"]]), .set("/a/m", [".sv": ["increment": 2]])],
            ["/a": ["m": [".sv": ["increment": 2]], "n": [".sv": "timestamp"]]]),
        Case(
            "a server value with a priority",
            [.set("/a", [".value": [".sv": "timestamp"], ".priority": [".sv": "timestamp"]])],
            ["/a": [".value": [".sv": "timestamp"], ".priority": [".sv": "timestamp"]]]),
        Case("cancel at the place", [.set("/a", 1), .set("/b", 2), .cancel("/a")], ["/b": 2]),
        Case("cancel above", [.set("/a/b", 1), .set("/a/c/d", 2), .set("/a/.priority", 3), .cancel("/a")], [:]),
        Case(
            "cancel below a value spares the siblings",
            [.set("/a", ["x": 1, "y": ["p": 2, "q": 3]]), .cancel("/a/y/p")],
            ["/a/x": 1, "/a/y/q": 3]),
        Case("cancel of what a value does not name", [.set("/a", ["x": 1]), .cancel("/a/z")], ["/a/x": 1]),
        Case("cancel below a leaf", [.set("/a", 1), .cancel("/a/b")], ["/a": 1]),
        Case("cancel below a removal", [.set("/a", nil), .cancel("/a/b")], [:]),
        Case("cancel of a part of an update", [.update("/a", ["b": 1, "c": 2]), .cancel("/a/b")], ["/a/c": 2]),
        Case("cancel of everything", [.set("/a", 1), .set("/b/c", 2), .cancel("/")], [:]),
        Case("cancel of nothing", [.set("/a", 1), .cancel("/b/c")], ["/a": 1]),
        Case(
            "set after cancel", [.set("/a", ["x": 1, "y": 2]), .cancel("/a/x"), .set("/a/x/z", 3)],
            ["/a/x/z": 3, "/a/y": 2]),
    ]

    @Test(
        arguments: [
            1, nil, "鳩", ["a": "x", "b": ["c": true]], [".value": "x", ".priority": "later"],
            [".priority": 7, "a": [".sv": "timestamp"], "b": [".value": [".sv": "timestamp"], ".priority": 1]],
        ] as [JSONValue])
    func bytesAreKnownBeforeANodeIsMade(of value: JSONValue) throws {
        let (set, update) = (Mutation.set(value, at: try TreePath("/a")), ["b/c": value] as JSONObject)
        let kept = try #require(try DeferredWrite.all(of: set).first).node.byteCount
        #expect(DeferredWrite.byteCount(of: set, upTo: kept) == kept)
        #expect(DeferredWrite.byteCount(of: set, upTo: kept - 1) >= kept)
        #expect(DeferredWrite.byteCount(of: .update(update, at: try TreePath("/a")), upTo: 10_000) == kept + 3)
    }

    @Test(arguments: cases) func callsAreMerged(_ which: Case) throws {
        let batches = try Self.tree(which.calls).batches
        #expect(batches.count == (which.written.isEmpty ? 0 : 1))
        #expect(Self.written(batches) == which.written)
    }

    @Test func oneOwnerNeverWritesIntoTheEntryOfAnother() throws {
        let calls: [Call] = [
            .set("/a", ["x": 1]), .set("/a/b", 2, by: "b"), .set("/a/b/c", 3), .set("/a/b/.priority", 4),
            .set("/d", 5, by: "b"),
        ]
        let batches = try Self.tree(calls).batches
        #expect(batches.map(\.owner) == ["a", "b", "b", "a"])
        #expect(
            batches.map { Self.written([$0]) } == [
                ["/a": ["x": 1]], ["/d": 5], ["/a/b": 2], ["/a/b/c": 3, "/a/b/.priority": 4],
            ])
        let replaced = try Self.tree(calls + [.set("/a", 6, by: "b")]).batches
        #expect(replaced.map(\.owner) == ["b"])
        #expect(try Self.tree(calls + [.cancel("/a/b")]).count == 2)
        #expect(Self.written(try Self.tree(calls + [.cancel("/a/b")]).batches) == ["/a/x": 1, "/d": 5])
    }

    @Test func mutationHoldsTheWritesOfABatch() throws {
        let two = try #require(try Self.tree([.set("/a", 1), .set("/b/.priority", 2)]).batches.first)
        guard case .update(let values) = two.mutation.operation else { throw Unexpected() }
        #expect(values == ["a": 1, "b/.priority": 2])
        #expect(two.mutation.path.isRoot)
        let halves = two.halves
        #expect(halves.map(\.writes.count) == [1, 1])
        guard case .set(let value) = halves[0].mutation.operation else { throw Unexpected() }
        #expect((halves[0].mutation.path, value) == (try TreePath("/a"), 1))
        #expect(halves[0].halves.isEmpty)
    }

    @Test func malformedWriteIsRefusedAtOnce() throws {
        let wrong: [(Mutation, String, String)] = [
            (.set([".sv": "time"], at: .root), "value", "invalid_server_value"),
            (.set(["a.b": 1], at: .root), "value", "invalid_key"),
            (.set([".value": 1, "b": 2], at: .root), "value", "invalid_value"),
            (.update(["a": 1, "a/b": 2], at: .root), "values", "conflicting_paths"),
            (.update(["/": 1], at: .root), "values", "invalid_path"),
            (.set(true, at: try TreePath("/a/.priority")), "value", "invalid_priority"),
        ]
        for (mutation, parameter, reason) in wrong {
            let error = #expect(throws: TreeError.self) { try DeferredWrite.all(of: mutation) }
            #expect(error?.rpcError.data["parameter"] == .string(parameter))
            #expect(error?.rpcError.reason == reason)
        }
    }

    // MARK: Random calls

    @Test func randomCallsAddUpAsTheyDoInAList() throws {
        let seed = SeededRandom.seed()
        var random = RandomCalls(random: SeededRandom(seed: seed))
        for _ in 0..<300 {
            var tree = DisconnectTree<String>()
            var list = EntryList()
            for _ in 0..<Int.random(in: 1...12, using: &random.random) {
                let call = random.next(owners: ["a"], cancels: true)
                try Self.apply(call, to: &tree)
                try list.apply(call)
                let written = tree.batches.flatMap(\.writes)
                #expect(tree.batches.count <= 1)
                let nodes = try written.map {
                    ($0.path, try TreeNode(json: $0.node.json, at: .root, serverValues: Zero()))
                }
                #expect(Dictionary(nodes) { $1 } == list.entries, "seed \(seed)")
                // Its size is that of a tree that only received the remaining entries.
                var fresh = DisconnectTree<String>()
                for write in written { fresh.set(write, by: "a") }
                #expect((tree.count, tree.byteCount) == (fresh.count, fresh.byteCount), "seed \(seed)")
            }
        }
    }

    /// A deep path of short keys takes more than its text.
    @Test func depthCounts() throws {
        let path = try TreePath(String(repeating: "/a", count: TreeLimits.depthMax))
        var tree = DisconnectTree<String>()
        for write in try DeferredWrite.all(of: .set(1, at: path)) { tree.set(write, by: "a") }
        #expect(tree.byteCount > 200 * TreeLimits.depthMax)
        tree.cancel(at: path)
        #expect(tree.byteCount == 0)
    }

    @Test func smallCallsIntoALargeEntryReturnAmendments() throws {
        var object: JSONObject = [:]
        for number in 0..<1_000 { object["k\(number)"] = .number(Double(number)) }
        var tree = try Self.tree([.set("/a", .object(object))])
        var (added, amended) = (0, 0)
        for number in 0..<1_000 {
            for step in try Self.apply(.set("/a/k7", .number(Double(number))), to: &tree) {
                switch step {
                case .added: added += 1
                case .amended: amended += 1
                case .removed(_, _, let numbers): #expect(numbers.count > 100)
                }
            }
        }
        #expect(added < 10)
        #expect(added + amended == 1_000)
        #expect(tree.batches.first?.writes.first?.node.json["k7"] == 999)
        let removal = try #require(tree.batches.first?.removals.first)
        guard case .removed(_, "a", let numbers) = removal else { throw Unexpected() }
        #expect(numbers.count < 500)
    }

    @Test func stepsOfRandomCallsLeadToTheSameEntries() throws {
        let seed = SeededRandom.seed()
        var random = RandomCalls(random: SeededRandom(seed: seed))
        var seen = 0
        for _ in 0..<300 {
            var tree = DisconnectTree<String>()
            var kept: [TreePath: DisconnectEntry<String>] = [:]
            var amendments: [UInt64: DisconnectAmendment] = [:]
            for _ in 0..<Int.random(in: 1...12, using: &random.random) {
                for step in try Self.apply(random.next(owners: ["a", "b", "c"], cancels: true), to: &tree) {
                    switch step {
                    case .removed(let path, let owner, let numbers):
                        #expect(kept.removeValue(forKey: path)?.owner == owner, "seed \(seed)")
                        for number in numbers {
                            #expect(amendments.removeValue(forKey: number)?.entryPath == path, "seed \(seed)")
                        }
                    case .added(let entry):
                        #expect(kept.updateValue(entry, forKey: entry.write.path) == nil, "seed \(seed)")
                    case .amended(let amendment):
                        #expect(kept[amendment.entryPath] != nil, "seed \(seed)")
                        #expect(amendments.updateValue(amendment, forKey: amendment.number) == nil, "seed \(seed)")
                        seen += 1
                    }
                }
                #expect(amendments.values.allSatisfy { kept[$0.entryPath] != nil }, "seed \(seed)")
                // As restored from storage.
                let entries = kept.values.map { entry in
                    DisconnectEntry(
                        write: DeferredWrite(path: entry.write.path, kept: entry.write.node.json), owner: entry.owner)
                }
                let again = DisconnectTree(
                    entries: entries,
                    amendments: amendments.values.map {
                        DisconnectAmendment(
                            number: $0.number, entryPath: $0.entryPath,
                            write: DeferredWrite(path: $0.write.path, kept: $0.write.node.json))
                    })
                #expect(again.count == tree.count && again.byteCount == tree.byteCount, "seed \(seed)")
                #expect(Self.sorted(again.batches) == Self.sorted(tree.batches), "seed \(seed)")
            }
        }
        #expect(seen > 10, "seed \(seed)")
    }

    private static func json(_ value: JSONValue) -> String {
        var writer = JSONWriter()
        writer.write(value)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func sorted(_ batches: [DisconnectBatch<String>]) -> [String] {
        batches.map { batch in "\(batch.owner): \(batch.writes.map { "\($0.path) \(json($0.node.json))" }.sorted())" }
    }

    /// Without removals: they would also undo what an earlier call wrote to the nodes above, had it been written.
    @Test func randomCallsOfSeveralOwnersWriteWhatTheyWouldOneByOne() throws {
        let seed = SeededRandom.seed()
        var random = RandomCalls(random: SeededRandom(seed: seed), isPlain: true)
        for _ in 0..<500 {
            var tree = DisconnectTree<String>()
            var expected = try TreeNode(json: random.value(depth: 3), at: .root, serverValues: Zero())
            let before = expected
            for _ in 0..<Int.random(in: 1...12, using: &random.random) {
                let call = random.next(owners: ["a", "b", "c"], cancels: false)
                try Self.apply(call, to: &tree)
                for (path, json) in try Self.writes(of: call) {
                    expected = expected.setting(try TreeNode(json: json, at: path, serverValues: Zero()), at: path)
                }
            }
            var node = before
            for write in tree.batches.flatMap(\.writes) {
                node = node.setting(
                    try TreeNode(json: write.node.json, at: .root, serverValues: Zero()), at: write.path)
            }
            #expect(node == expected, "seed \(seed)")
        }
    }

    /// A copy of the entry for each call would take a hundred times as long in the large one.
    @Test func callIntoAnEntryTakesNoLongerWhereTheEntryIsLarge() throws {
        func duration(children: Int) throws -> Duration {
            var tree = DisconnectTree<String>()
            let object = JSONObject(
                uniqueMembers: (0..<children).map { .init("k\($0)", .string(String(repeating: "x", count: 20))) })
            for write in try DeferredWrite.all(of: .set(.object(object), at: TreePath("/a"))) {
                tree.set(write, by: "a")
            }
            let writes = try DeferredWrite.all(
                of: .update(JSONObject(uniqueMembers: (0..<500).map { .init("k\($0)", 1) }), at: TreePath("/a")))
            return ContinuousClock().measure {
                for write in writes { tree.set(write, by: "a") }
            }
        }
        let small = try (0..<3).map { _ in try duration(children: 500) }.min() ?? .zero
        let large = try (0..<3).map { _ in try duration(children: 50_000) }.min() ?? .zero
        #expect(large < small * 20)
    }

    @Test func entriesThatACancelLeavesAreCountedBefore() throws {
        let seed = SeededRandom.seed()
        var random = RandomCalls(random: SeededRandom(seed: seed))
        for _ in 0..<500 {
            var tree = DisconnectTree<String>()
            for _ in 0..<8 { try Self.apply(random.next(owners: ["a", "b"], cancels: false), to: &tree) }
            for path in ["/a", "/a/b", "/a/b/c", "/b/a", "/c"] {
                let path = try TreePath(path)
                var after = tree
                after.cancel(at: path)
                #expect(tree.entriesMin(afterCancelAt: path) <= after.count, "seed \(seed)")
            }
        }
        let large = try Self.tree([
            .set("/a", .object(JSONObject(uniqueMembers: (0..<100).map { .init("k\($0)", ["x": 1, "y": 2]) })))
        ])
        #expect(large.entriesMin(afterCancelAt: try TreePath("/a/k1")) == 99)
        #expect(large.entriesMin(afterCancelAt: try TreePath("/a/k1/x")) == 100)
        #expect(large.entriesMin(afterCancelAt: try TreePath("/a")) == 0)
    }

    // MARK: -

    static func tree(_ calls: [Call]) throws -> DisconnectTree<String> {
        var tree = DisconnectTree<String>()
        for call in calls { try apply(call, to: &tree) }
        return tree
    }

    @discardableResult
    static func apply(
        _ call: Call, to tree: inout DisconnectTree<String>
    ) throws -> [DisconnectStep<String>] {
        switch call {
        case .set(let path, let value, let owner):
            try DeferredWrite.all(of: .set(value, at: TreePath(path))).flatMap { tree.set($0, by: owner) }
        case .update(let path, let values):
            try DeferredWrite.all(of: .update(values, at: TreePath(path))).flatMap { tree.set($0, by: "a") }
        case .cancel(let path): tree.cancel(at: try TreePath(path))
        }
    }

    static func writes(of call: Call) throws -> [(TreePath, JSONValue)] {
        switch call {
        case .set(let path, let value, _): [(try TreePath(path), value)]
        case .update(let path, let values):
            try values.members.map { (try TreePath(path).appending(TreePath($0.name)), $0.value) }
        case .cancel: []
        }
    }

    static func written(_ batches: [DisconnectBatch<String>]) -> JSONObject {
        let members = batches.flatMap(\.writes).map { JSONObject.Member($0.path.text, $0.node.json) }
        return JSONObject(uniqueMembers: members)
    }

    private struct Unexpected: Error {}
}

extension DisconnectTreeTests.Case {
    init(_ name: String, _ calls: [DisconnectTreeTests.Call], _ written: JSONObject) {
        self.init(testDescription: name, calls: calls, written: written)
    }
}

/// A reference implementation of the entries: a list with a path for each.
private struct EntryList {
    var entries: [TreePath: TreeNode] = [:]

    mutating func apply(_ call: DisconnectTreeTests.Call) throws {
        if case .cancel(let path) = call { return try cancel(TreePath(path)) }
        for (path, json) in try DisconnectTreeTests.writes(of: call) {
            set(try TreeNode(json: json, at: .root, serverValues: Zero()), at: path)
        }
    }

    private mutating func set(_ node: TreeNode, at path: TreePath) {
        entries = entries.filter { !path.isAtOrAbove($0.key) }
        if let (above, value) = entries.first(where: { $0.key.isAtOrAbove(path) }), let inner = path.relative(to: above)
        {
            entries[above] = value.setting(node, at: inner)
        } else {
            entries[path] = node
        }
    }

    private mutating func cancel(_ path: TreePath) throws {
        entries = entries.filter { !path.isAtOrAbove($0.key) }
        while let (above, value) = entries.first(where: { $0.key.isAtOrAbove(path) && $0.value.leaf == nil }) {
            entries[above] = nil
            for child in value.children ?? TreeChildren(sorted: []) {
                let place = try above.child(child.key)
                if !path.isAtOrAbove(place) { entries[place] = child.node }
            }
        }
    }
}

private struct RandomCalls {
    var random: SeededRandom
    /// Whether values have no priority and are never empty.
    var isPlain = false
    private static let keys = ["a", "b", "c", "1"]

    mutating func next(owners: [String], cancels: Bool) -> DisconnectTreeTests.Call {
        let path = "/" + (0..<Int.random(in: 0...3, using: &random)).map { _ in key() }.joined(separator: "/")
        switch Int.random(in: 0..<(cancels ? 10 : 7), using: &random) {
        case 0:
            var values = JSONObject()
            for _ in 0..<Int.random(in: 0..<3, using: &random) { values[key()] = value(depth: 2) }
            return .update(path, values)
        case 7...: return .cancel(path)
        default: return .set(path, value(depth: 2), by: owners.randomElement(using: &random) ?? "a")
        }
    }

    mutating func value(depth: Int) -> JSONValue {
        switch Int.random(in: (isPlain ? 1 : 0)..<(depth > 0 ? 9 : 5), using: &random) {
        case 0: return .null
        case 1: return .bool(true)
        case 2: return .number(Double(Int.random(in: 0..<5, using: &random)))
        case 3: return [".sv": "timestamp"]
        case 4: return isPlain ? "text" : [".value": "text", ".priority": 2]
        case 5: return .array([value(depth: depth - 1), value(depth: depth - 1)])
        default:
            var object = JSONObject()
            if !isPlain, Bool.random(using: &random) { object[".priority"] = "p" }
            for _ in (isPlain ? -1 : 0)..<Int.random(in: 0..<4, using: &random) {
                object[key()] = value(depth: depth - 1)
            }
            return .object(object)
        }
    }

    private mutating func key() -> String { Self.keys.randomElement(using: &random) ?? "a" }
}

/// Every server value is 0.
private struct Zero: ServerValueSource {
    func number(for _: ServerValue, at _: ServerValueLocation) throws -> Double { 0 }
}
