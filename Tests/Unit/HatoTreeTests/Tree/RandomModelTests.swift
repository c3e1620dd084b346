import HatoModel
import HatoTesting
import Testing

@testable import HatoTree

/// Random writes, planned over rows, against the naive tree.
struct RandomModelTests {
    @Test func twentyThousandRandomWritesMeanWhatTheNaiveTreeSays() throws {
        let seed = SeededRandom.seed()
        var run = RandomRun(seed: seed)
        for step in 0..<20_000 {
            try run.step()
            if step % 20 == 0 { try run.checkRows() }
            if !run.problems.isEmpty {
                Issue.record("seed \(seed), step \(step): \(run.problems.joined(separator: "\n"))")
                return
            }
        }
        // About half of them change something; the exact number depends on the seed.
        #expect(run.written > 8_000, "seed \(seed)")
    }
}

private struct RandomRun {
    private var random: SeededRandom
    private let tree = MemoryTree()
    private var naive = NaiveTree()
    private var now: Int64 = 0
    private var generator = PushKeyGenerator()
    private(set) var written = 0
    private(set) var problems: [String] = []

    private static let keys = ["a", "b", "c", "0", "1", "2", "3", "10", "007", "-1", "é", "😀", "\u{FFFD}", "aa", "B"]

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func step() throws {
        now += 1
        let before = naive
        let mutation = try mutate()
        let plan = try tree.planner.plan(mutation, reading: tree.rows, at: now)
        plan.rows.apply(to: tree.rows)
        if !plan.isEmpty { written += 1 }
        if plan.isEmpty, naive != before { problems.append("nothing planned for \(mutation)") }
        if plan.isEmpty, !plan.rows.isEmpty { problems.append("rows without a change by \(mutation)") }
        try compareReads(mutation)
        try compareChanges(plan, before)
    }

    /// Checks that the rows pass a check of the store.
    mutating func checkRows() throws {
        var findings: [String] = []
        // No index of priorities is kept here.
        let check = TreeCheck(tree.rows, codec: tree.codec, indexCodec: IndexKeyCodec(prefix: [9])) { finding in
            if !finding.isOfIndex { findings.append("\(finding.problem) at \(finding.path?.description ?? "?")") }
        }
        _ = try check.run {}
        problems += findings
    }

    /// Makes a write and applies it to the naive tree.
    private mutating func mutate() throws -> Mutation {
        let keys = path(0...4)
        let place = try TreePath(keys.joined(separator: "/"))
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<6:
            let value = value(depth: 3)
            naive.set(NaiveTree(value, now: Double(now), stored: naive.node(at: keys)), at: keys)
            return .set(value, at: place)
        case 6..<10:
            naive.set(NaiveTree(), at: keys)
            return .remove(at: place)
        case 10..<13:
            let key = generator.next(now: now, using: &random)
            let value = value(depth: 2)
            // Pushes make the tree grow; sometimes their children are removed again.
            if keys.count > 2 { fallthrough }
            naive.set(NaiveTree(value, now: Double(now), stored: nil), at: keys + [key.text])
            return .push(value, at: place, key: key)
        case 13..<15:
            let priority = priority()
            naive.setPriority(resolved(priority, at: keys, in: naive), at: keys)
            return .setPriority(priority, at: place)
        case 15:
            naive = NaiveTree()
            return .remove(at: .root)
        default:
            return update(at: keys, place)
        }
    }

    private mutating func update(at keys: [String], _ place: TreePath) -> Mutation {
        let stored = naive
        var values = JSONObject()
        var paths: [[String]] = []
        var nodes: [(keys: [String], node: NaiveTree)] = []
        var priorities: [(keys: [String], value: JSONValue)] = []
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let path = path(1...3)
            let isPriority = Int.random(in: 0..<5, using: &random) == 0
            let whole = path + (isPriority ? [".priority"] : [])
            if paths.contains(where: { $0.starts(with: whole) || whole.starts(with: $0) }) { continue }
            paths.append(whole)
            let value = isPriority ? priority() : Bool.random(using: &random) ? .null : value(depth: 2)
            values.append(whole.joined(separator: "/"), value)
            if isPriority {
                priorities.append((keys + path, value))
            } else {
                nodes.append(
                    (keys + path, NaiveTree(value, now: Double(now), stored: stored.node(at: keys + path))))
            }
        }
        // An update is one step: a parent that it empties and fills again never vanishes, and keeps its priority.
        for (path, node) in nodes where !node.isEmpty { naive.set(node, at: path) }
        for (path, node) in nodes where node.isEmpty { naive.set(node, at: path) }
        for (path, value) in priorities { naive.setPriority(resolved(value, at: path, in: stored), at: path) }
        return .update(values, at: place)
    }

    // MARK: Random parts

    private mutating func path(_ lengths: ClosedRange<Int>) -> [String] {
        (0..<Int.random(in: lengths, using: &random)).map { _ in key() }
    }

    private mutating func key() -> String { RandomRun.keys.randomElement(using: &random) ?? "a" }

    private mutating func priority() -> JSONValue {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: .null
        case 1: .string("p")
        case 2: [".sv": "timestamp"]
        default: .number(Double(Int.random(in: 0..<3, using: &random)))
        }
    }

    private func resolved(_ priority: JSONValue, at keys: [String], in stored: NaiveTree) -> JSONValue? {
        if let server = priority[".sv"] {
            return NaiveTree.resolve(server, Double(now), stored.node(at: keys)?.priority)
        }
        return priority.isNull ? JSONValue?.none : priority
    }

    private mutating func value(depth: Int) -> JSONValue {
        let kind = Int.random(in: 0..<(depth > 0 ? 14 : 8), using: &random)
        switch kind {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2, 3: return .number(Double(Int.random(in: -3..<3, using: &random)) / 2)
        case 4, 5: return .string(["", "x", "é😀", "a\"b"].randomElement(using: &random) ?? "")
        case 6: return Bool.random(using: &random) ? [".sv": "timestamp"] : [".sv": ["increment": 2]]
        case 7: return [".value": .string("v"), ".priority": priority()]
        case 8: return .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: depth - 1) })
        default:
            var object = JSONObject()
            for _ in 0..<Int.random(in: 0..<4, using: &random) { object[key()] = value(depth: depth - 1) }
            if kind == 9 { object[".priority"] = priority() }
            return .object(object)
        }
    }

    // MARK: Comparing

    private mutating func compareReads(_ mutation: Mutation) throws {
        let node = try tree.nodes.node(at: .root)
        expect(node.export, naive.export, "export after \(mutation)")
        expect(try text(.export, .root), naive.export, "exported text after \(mutation)")
        expect(try text(.plain, .root), naive.plain, "plain text after \(mutation)")
        if SimpleHash.hash(node) != SimpleHash.hash(try TreeNode(json: naive.export)) {
            problems.append("hash after \(mutation)")
        }
        let keys = path(0...3)
        let place = try TreePath(keys.joined(separator: "/"))
        let part = naive.node(at: keys) ?? NaiveTree()
        expect(try text(.plain, place), part.plain, "plain text of \(place) after \(mutation)")
        expect(try tree.nodes.node(at: place).plain, part.plain, "node \(place) after \(mutation)")
        var writer = JSONWriter()
        try tree.nodes.writeShallow(place, to: &writer)
        expect(try JSONParser.parse(writer.bytes.span), part.shallow, "shallow \(place) after \(mutation)")
    }

    private func text(_ format: NodeReader.Format, _ path: TreePath) throws -> JSONValue {
        var writer = JSONWriter()
        try tree.nodes.write(path, format, to: &writer)
        return try JSONParser.parse(writer.bytes.span)
    }

    /// The changes of a plan must lead from one state to the other, and match both.
    private mutating func compareChanges(_ plan: WritePlan, _ before: NaiveTree) throws {
        var node = try TreeNode(json: before.export)
        for change in plan.changes {
            let old = before.node(at: change.path.keys.map(\.text)) ?? NaiveTree()
            let oldJSON = change.path.isPriority ? old.priority ?? .null : old.export
            expect(change.before?.export ?? "missing", oldJSON, "before of \(change.path)")
            let new = naive.node(at: change.path.keys.map(\.text)) ?? NaiveTree()
            let newJSON = change.path.isPriority ? new.priority ?? .null : new.export
            // A priority set beside children of the same update may have no node any more.
            expect(change.after?.export ?? "missing", newJSON, "after of \(change.path)")
            if change.existedDepth != depth(of: change.path, in: before) { problems.append("existed of \(change)") }
            if change.existsDepth != depth(of: change.path, in: naive) { problems.append("exists of \(change)") }
        }
        // All at once: no node is empty in between, and priorities belong to existing nodes.
        let priorities = plan.changes.filter(\.path.isPriority), nodes = plan.changes.filter { !$0.path.isPriority }
        let removals = nodes.filter { $0.after == .empty }, values = nodes.filter { $0.after != .empty }
        for change in values + removals + priorities { node = node.setting(change.after ?? .empty, at: change.path) }
        expect(node.export, naive.export, "the changes \(plan.changes)")
        let record = ChangeRecord(version: 1, time: now, uid: nil, database: "d", changes: plan.changes)
        if try ChangeRecord(decoding: record.encoded) != record { problems.append("record of \(plan.changes)") }
    }

    private func depth(of path: TreePath, in tree: NaiveTree) -> Int {
        var depth = path.depth
        while depth > 0, tree.node(at: path.keys.prefix(depth).map(\.text)) == nil { depth -= 1 }
        return depth
    }

    private mutating func expect(_ found: JSONValue, _ wanted: JSONValue, _ what: String) {
        if found != wanted { problems.append("\(what): \(RandomRun.text(found)) is not \(RandomRun.text(wanted))") }
    }

    private static func text(_ json: JSONValue) -> String {
        var writer = JSONWriter()
        writer.write(json)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
