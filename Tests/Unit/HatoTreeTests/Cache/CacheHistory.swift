import HatoModel
import HatoRules
import HatoTesting

@testable import HatoTree

/// A random history of writes that are planned with a cache.
struct CacheHistory {
    private var random: SeededRandom
    private let tree = MemoryTree()
    private var planner: WritePlanner
    private var waiting: [(ahead: OptimisticPlan, isOutdated: Bool)] = []
    private var removals: [Mutation] = []

    /// Something that was read or planned through the cache is not what is stored.
    struct Disagreement: Error {
        var time: Int64
        var what: String
    }

    private(set) var aheadCount = 0
    private(set) var refusedCount = 0
    private(set) var freeCount = 0
    /// How many facts were known without a read.
    private(set) var savedCount = 0

    init(seed: UInt64, _ cache: NodeCache) {
        random = SeededRandom(seed: seed)
        planner = WritePlanner(codec: tree.codec, cache: cache)
        planner.smallBytesMax = -1
    }

    /// One turn: reads, a write, and reads before its commit.
    mutating func step(_ time: Int64) throws {
        let rows = CountingReader(tree.rows)
        let turn = planner.turn(reading: rows)
        try compareReads(turn, rows, time)
        let plan = try plan(in: turn, time)
        try compareReads(turn, rows, time)
        guard let plan, !random.chance(1, in: 10) else { return refusedCount += 1 }
        turn.commit(plan)
        for index in waiting.indices where waiting[index].ahead.basis.isTouched(by: plan.changes) {
            waiting[index].isOutdated = true
        }
        plan.rows.apply(to: tree.rows)
    }

    // MARK: Writes

    /// The plan of a write; nil when it is refused, or will be applied later.
    private mutating func plan(in turn: Turn, _ time: Int64) throws -> WritePlan? {
        if random.chance(1, in: 4), let index = waiting.indices.randomElement(using: &random) {
            let (ahead, isOutdated) = waiting.remove(at: index)
            if isOutdated { return nil }
            aheadCount += 1
            return ahead.plan
        }
        if removals.isEmpty, random.chance(1, in: 20) { removals = try emptying() }
        var mutation = try removals.popLast() ?? Self.mutation(time, &random)
        if case .set = mutation.operation, random.chance(1, in: 4) {
            let stored = SimpleHash.etag(try tree.nodes.node(at: mutation.path))
            mutation.condition = .etag(random.chance(3, in: 4) ? stored : "another")
        }
        guard let resolved = try? planner.resolve(mutation, reading: tree.rows, at: time) else { return nil }
        if random.chance(1, in: 4) {
            if let ahead = try? planner.planAhead(resolved, reading: tree.rows) { waiting.append((ahead, false)) }
            return nil
        }
        let plain = try? tree.planner.plan(resolved, reading: tree.rows)
        let made = try? planner.plan(resolved, in: turn)
        guard made?.changes == plain?.changes else { throw Disagreement(time: time, what: "\(mutation)") }
        return made
    }

    /// Removes all children of a node, not the node: at once or one by one.
    private mutating func emptying() throws -> [Mutation] {
        let room = try TreePath(random.pick(Self.rooms))
        let children = try tree.nodes.node(at: room).children.map { Array($0) } ?? []
        if random.chance(1, in: 2) { return try children.map { .remove(at: try room.child($0.key)) } }
        return [.update(JSONObject(uniqueMembers: children.map { .init($0.key.text, .null) }), at: room)]
    }

    // MARK: Reads

    private struct Facts: Equatable {
        var leaf: TreeLeaf?
        var exists: Bool
        var hasChildren: Bool
        var priority: TreePriority?

        init(_ data: StoredData, at path: TreePath) throws {
            leaf = try data.leaf(at: path)
            exists = try data.exists(at: path)
            hasChildren = try data.hasChildren(at: path)
            priority = try data.priority(at: path)
        }
    }

    private mutating func compareReads(_ turn: Turn, _ rows: CountingReader, _ time: Int64) throws {
        for path in try paths(time) {
            let before = rows.gets + rows.scans
            let facts = try Facts(planner.storedData(in: turn), at: path)
            if rows.gets + rows.scans == before { savedCount += 1 }
            guard try facts == Facts(StoredData(tree.rows, codec: tree.codec), at: path),
                try isFreeAgrees(turn, path)
            else { throw Disagreement(time: time, what: path.text) }
        }
        guard try scansAgree(turn) else { throw Disagreement(time: time, what: "a scan") }
    }

    /// Whether a path that is known to be free is.
    private mutating func isFreeAgrees(_ turn: Turn, _ path: TreePath) throws -> Bool {
        guard turn.isFree(EncodedPath(path, tree.codec)) == true else { return true }
        freeCount += 1
        // The root may be empty: see `LocatedNode.rootIsThere`.
        guard try !tree.nodes.exists(at: path), let parent = path.parent,
            try parent.isRoot || tree.nodes.exists(at: parent)
        else { return false }
        return try tree.nodes.leaf(at: parent) == nil
    }

    /// Scans a range between the keys of two nodes, with seeks.
    private mutating func scansAgree(_ turn: Turn) throws -> Bool {
        let keys = try (0..<6).map { _ in
            let path = try TreePath(random.pick(Self.rooms))
            let key = tree.codec.key(of: try path.child(TreeKey(random.pick(["z", "a", "7", "\u{7E}"]))))
            return random.chance(1, in: 2) ? key : tree.codec.key(of: path)
        }
        let upper = random.chance(1, in: 8) ? TreeKeyCodec.upperBound(of: tree.codec.prefix) : keys[1]
        let scan = SeekingScan(
            lower: keys[0], upper: upper, reverse: random.chance(1, in: 2),
            seeks: keys[2...].map { random.chance(1, in: 3) ? $0 : nil })
        return try scan.keys(turn) == scan.keys(tree.rows)
    }

    // MARK: Paths

    /// Paths that the history writes to now or has written to, some a long time ago, and paths beside and below them.
    private mutating func paths(_ time: Int64) throws -> [TreePath] {
        let room = try TreePath(random.pick(Self.rooms))
        let offset = random.pick([-1000, -100, -10, -5, -4, -3, -2, -1, 0, 1, 2, 3] as [Int64])
        let pushed = PushKey(milliseconds: max(0, time + offset), random: (UInt64.random(in: 0...1, using: &random), 0))
        let child = try room.child(TreeKey(pushed))
        let all = [
            room, child, try child.child(TreeKey("t")), try room.child(TreeKey("z")),
            try room.child(TreeKey("z")).child(TreeKey("q")), try room.child(Self.longKey(pushed, &random)),
            try room.child(TreeKey(random.pick(Self.numbers))), .root,
        ]
        return all.filter { _ in random.chance(1, in: 2) }
    }

    /// Two with equal beginnings, also equal to that of a pushed key.
    private static func longKey(_ pushed: PushKey, _ random: inout SeededRandom) throws -> TreeKey {
        try TreeKey("\(pushed)-long-\(random.pick([1, 2]))")
    }

    /// Their rows have zeros in them, and different lengths.
    private static let numbers = ["0", "-0", "00", "7", "07", "256"]
    private static let rooms = ["/r/1", "/r/2", "/r/3", "/r", "/s", "/r/1/-zzzzzzz------------", "/t/u/v", "/"]

    private static func mutation(_ time: Int64, _ random: inout SeededRandom) throws -> Mutation {
        let room = try TreePath(random.pick(rooms))
        let offset = Int64.random(in: -3...3, using: &random)
        let pushed = PushKey(milliseconds: max(0, time + offset), random: (UInt64.random(in: 0...1, using: &random), 0))
        switch Int.random(in: 0..<40, using: &random) {
        case 0: return .remove(at: .root)
        case 1: return .set(5, at: room)
        case 2: return .remove(at: room)
        case 3: return .set([pushed.text: 1, "a": 2], at: room)
        case 4:
            let keys = [try TreeKey("z"), try longKey(pushed, &random), try TreeKey(random.pick(numbers))]
            return .set(1, at: try room.child(random.pick(keys)))
        case 5: return .remove(at: try room.child(TreeKey("z")))
        case 6: return .remove(at: room.parent ?? .root)
        case 7: return .set(7, at: room.parent ?? .root)
        case 8: return .setPriority(1, at: room)
        case 9: return .update(["r/1/z": nil, "r/2": nil, "r/3/\(pushed)": 1, "s/.priority": 2], at: .root)
        case 10...15: return .set(.null, at: try room.child(TreeKey(pushed)))
        case 16...18: return .push("x", at: room, key: pushed, isClientKey: true)
        case 19...22: return .set(["t": 2, "u": 3], at: try room.child(TreeKey(pushed)))
        case 23:
            let other = PushKey(milliseconds: time, random: (2, 0))
            return .update(["\(pushed)": 1, "\(other)": ["t": 1], "z": nil], at: room)
        default: return .push(["t": 1], at: room, key: pushed)
        }
    }
}

/// A scan that seeks from some of the rows that it visits.
struct SeekingScan {
    var lower: [UInt8]
    var upper: [UInt8]?
    var reverse: Bool
    /// Where it goes on after each row, if that is ahead; it ends after the last.
    var seeks: [[UInt8]?]

    /// The keys of the rows that it visits.
    func keys(_ reader: any TreeReader) throws -> [[UInt8]] {
        var keys: [[UInt8]] = []
        try reader.scan(lower: lower, upper: upper, reverse: reverse) { row, _ in
            let key = row.withUnsafeBufferPointer { Array($0) }
            keys.append(key)
            if keys.count > seeks.count { return .stop }
            guard let target = seeks[keys.count - 1] else { return .next }
            let isAhead = reverse ? target.lexicographicallyPrecedes(key) : key.lexicographicallyPrecedes(target)
            return isAhead ? .seek(target) : .next
        }
        return keys
    }
}
