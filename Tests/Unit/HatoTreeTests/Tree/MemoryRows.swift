import HatoModel

@testable import HatoTree

/// Sorted rows in memory, with which planners and readers are tested.
final class MemoryRows: TreeReader, RowTarget {
    private(set) var keys: [[UInt8]] = []
    private var values: [[UInt8]: [UInt8]] = [:]

    var count: Int { keys.count }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { values[copy(key)] }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        let start = place(of: lower)
        let end = upper.map { place(of: $0) } ?? keys.count
        guard start < end else { return }
        var index = reverse ? end - 1 : start
        while index >= start, index < end {
            let key = keys[index]
            let value = values[key] ?? []
            switch try visit(key.span, value.span) {
            case .next: index += reverse ? -1 : 1
            case .stop: return
            case .seek(let target):
                let next = place(of: target)
                if reverse {
                    let isFound = next < keys.count && keys[next] == target
                    precondition(target.lexicographicallyPrecedes(key), "a seek must go ahead")
                    index = isFound ? next : next - 1
                } else {
                    precondition(key.lexicographicallyPrecedes(target), "a seek must go ahead")
                    index = next
                }
            }
        }
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        let key = copy(key)
        if values.updateValue(copy(value), forKey: key) == nil { keys.insert(key, at: place(of: key)) }
    }

    func delete(_ key: Span<UInt8>) {
        let key = copy(key)
        if values.removeValue(forKey: key) != nil { keys.remove(at: place(of: key)) }
    }

    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        let end = upper.isEmpty ? keys.count : place(of: copy(upper))
        let gone = place(of: copy(lower))..<end
        for key in keys[gone] { values[key] = nil }
        keys.removeSubrange(gone)
    }

    private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.withUnsafeBufferPointer { Array($0) } }

    private func place(of key: [UInt8]) -> Int {
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// A small database in memory: the operations of tests on a tree.
struct MemoryTree {
    let rows = MemoryRows()
    let codec = TreeKeyCodec(prefix: [7, 7])
    var planner: WritePlanner { WritePlanner(codec: codec) }
    var nodes: NodeReader { NodeReader(rows, codec: codec) }

    @discardableResult
    func apply(_ mutation: Mutation, at now: Int64 = 1000, history: (any ChangeHistory)? = nil) throws -> WritePlan {
        let plan = try planner.plan(mutation, reading: rows, at: now, history: history)
        plan.rows.apply(to: rows)
        return plan
    }

    @discardableResult
    func set(_ path: String, _ value: JSONValue) throws -> WritePlan { try apply(.set(value, at: TreePath(path))) }

    @discardableResult
    func update(_ path: String, _ values: JSONObject) throws -> WritePlan {
        try apply(.update(values, at: TreePath(path)))
    }

    func export(_ path: String = "/") throws -> JSONValue { try nodes.node(at: TreePath(path)).export }

    func text(_ path: String = "/", _ format: NodeReader.Format = .plain, bytesMax: Int = .max) throws -> String {
        var writer = JSONWriter()
        try nodes.write(TreePath(path), format, to: &writer, bytesMax: bytesMax)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    func shallow(_ path: String = "/") throws -> String {
        var writer = JSONWriter()
        try nodes.writeShallow(TreePath(path), to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}

extension WritePlanner {
    /// A whole turn: resolves, plans and commits a mutation.
    func plan(
        _ mutation: Mutation, reading reader: any TreeReader, at now: Int64, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        try plan(resolve(mutation, reading: reader, at: now), reading: reader, history: history)
    }

    /// A whole turn: plans and commits a resolved mutation.
    func plan(
        _ resolved: ResolvedMutation, reading reader: any TreeReader, history: (any ChangeHistory)? = nil
    ) throws -> WritePlan {
        let turn = turn(reading: reader)
        let plan = try plan(resolved, in: turn, history: history)
        turn.commit(plan)
        return plan
    }
}

extension TreeNode {
    /// How many primitives there are in it.
    var leafCount: Int {
        guard let children else { return leaf == nil ? 0 : 1 }
        return children.reduce(0) { $0 + $1.node.leafCount }
    }
}
