import HatoModel
import HatoTree

/// A database for one row of a table: rows in a dictionary, sorted when they are read.
final class TableTree: TreeReader, RowTarget {
    private var rows: [[UInt8]: [UInt8]] = [:]
    let codec = TreeKeyCodec(prefix: Array("table".utf8))
    var nodes: NodeReader { NodeReader(self, codec: codec) }

    init(_ state: JSONValue) throws { try apply(.set(state, at: .root), at: 0) }

    @discardableResult
    func apply(_ mutation: Mutation, at time: Int64) throws -> WritePlan {
        try apply(mutation, WritePlanner(codec: codec), at: time)
    }

    @discardableResult
    func apply(_ mutation: Mutation, _ planner: WritePlanner, at time: Int64) throws -> WritePlan {
        let turn = planner.turn(reading: self)
        let plan = try planner.plan(planner.resolve(mutation, reading: turn, at: time), in: turn)
        turn.commit(plan)
        plan.rows.apply(to: self)
        return plan
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { rows[copy(key)] }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool,
        _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        var sorted = keys(from: lower, to: upper)
        if reverse { sorted.reverse() }
        var target: [UInt8]?
        for key in sorted {
            if let target, reverse ? target.lexicographicallyPrecedes(key) : key.lexicographicallyPrecedes(target) {
                continue
            }
            target = nil
            let value = rows[key] ?? []
            switch try visit(key.span, value.span) {
            case .next: continue
            case .stop: return
            case .seek(let key): target = key
            }
        }
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) { rows[copy(key)] = copy(value) }

    func delete(_ key: Span<UInt8>) { rows[copy(key)] = nil }

    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        for key in keys(from: copy(lower), to: upper.isEmpty ? nil : copy(upper)) { rows[key] = nil }
    }

    private func keys(from lower: [UInt8], to upper: [UInt8]?) -> [[UInt8]] {
        rows.keys.sorted { $0.lexicographicallyPrecedes($1) }.filter { key in
            !key.lexicographicallyPrecedes(lower) && (upper.map { key.lexicographicallyPrecedes($0) } ?? true)
        }
    }

    private func copy(_ bytes: Span<UInt8>) -> [UInt8] { bytes.withUnsafeBufferPointer { Array($0) } }
}
