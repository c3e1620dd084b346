import HatoModel
import HatoRules

@testable import HatoTree

/// A database in memory with indexes, and the same tree as a plain value, with which every result is compared.
struct IndexedTree {
    let rows = MemoryRows()
    let codec = TreeKeyCodec(prefix: [1])
    let indexCodec = IndexKeyCodec(prefix: [2])
    var catalog = IndexCatalog()
    private(set) var model = TreeNode.empty
    /// The limit of replaced nodes that are kept.
    var beforeBytesMax = PlanDraft.beforeBytesMax
    var skeletons = SkeletonBudget()

    init() {}

    /// A tree with indexes that are built at once.
    init(rules: String) throws {
        try adopt(rules)
        try build()
    }

    var nodes: NodeReader { NodeReader(rows, codec: codec) }
    var runner: QueryRunner {
        var runner = QueryRunner(rows, codec: codec, indexCodec: indexCodec)
        runner.newest = newest
        return runner
    }
    private let newest = NewestRows(limitMin: 1)

    mutating func adopt(_ rules: String) throws {
        let dropped = catalog.adopt(try Rules.compile(rules).indexes)
        var batch = RowBatch()
        for definition in dropped { indexCodec.dropRows(of: definition, from: &batch) }
        batch.apply(to: rows)
    }

    /// Builds one page of the first unfinished index; returns false when there is none.
    mutating func buildPage(childrenMax: Int = 2, nodesMax: Int = 5) throws -> Bool {
        guard let (definition, cursor) = catalog.building else { return false }
        let builder = IndexBuilder(definition, reader: rows, codec: codec, indexCodec: indexCodec)
        let page = try builder.page(after: cursor, childrenMax: childrenMax, nodesMax: nodesMax)
        page.rows.apply(to: rows)
        catalog.pageApplied(page)
        return true
    }

    mutating func build() throws {
        while try buildPage() {}
    }

    @discardableResult
    mutating func apply(_ mutation: Mutation) throws -> [PathChange] {
        var planner = WritePlanner(codec: codec, indexes: IndexDeltas(catalog, codec: indexCodec))
        (planner.beforeBytesMax, planner.skeletons) = (beforeBytesMax, skeletons)
        let plan = try planner.plan(mutation, reading: rows, at: 1_700_000_000_000)
        plan.rows.apply(to: rows)
        try applyToModel(mutation)
        return plan.changes
    }

    private mutating func applyToModel(_ mutation: Mutation) throws {
        func write(_ value: JSONValue, _ path: TreePath) throws {
            model = model.setting(try TreeNode(json: value, at: path.node), at: path)
        }
        switch mutation.operation {
        case .set(let value): try write(value, mutation.path)
        case .update(let values):
            // An update is one step: a parent that it empties and fills again never vanishes, and keeps its priority.
            let empty = try values.members.map { try TreeNode(json: $0.value, at: .root).isEmpty }
            for isEmpty in [false, true] {
                for (member, memberIsEmpty) in zip(values.members, empty) where memberIsEmpty == isEmpty {
                    try write(member.value, mutation.path.appending(TreePath(member.name)))
                }
            }
        case .push(let value, let key, _): try write(value, mutation.path.child(TreeKey(key)))
        }
    }

    @discardableResult
    mutating func set(_ path: String, _ value: JSONValue) throws -> [PathChange] {
        try apply(.set(value, at: TreePath(path)))
    }

    @discardableResult
    mutating func update(_ path: String, _ values: JSONObject) throws -> [PathChange] {
        try apply(.update(values, at: TreePath(path)))
    }

    /// The keys that a query selects, by its plan.
    func keys(_ query: TreeQuery, at path: String) throws -> [String] {
        let path = try TreePath(path)
        return try runner.sortKeys(query, at: path, by: QueryPlan(query, at: path, in: catalog)).map(\.key.text)
    }

    /// All rows of indexes.
    var indexRows: [[UInt8]] { rows.keys.filter { $0[0] == 2 } }

    /// The expected index rows, made from the whole tree.
    func expectedIndexRows(_ definitions: [IndexDefinition]) -> [[UInt8]] {
        var expected: [[UInt8]] = []
        func visit(_ node: TreeNode, _ keys: [TreeKey]) {
            guard let children = node.children else { return }
            for child in children {
                for definition in definitions where definition.covers(TreePath(uncheckedKeys: keys)) {
                    let value = SortValue(child.node.node(at: TreePath(uncheckedKeys: definition.targetKeys)))
                    let collection = indexCodec.prefix(of: definition.id, collection: keys)
                    expected.append(IndexKeyCodec.row(collection, SortKey(value, child.key)))
                }
                if let priority = child.node.priority {
                    let collection = indexCodec.prefix(of: IndexKeyCodec.priorities, collection: keys)
                    expected.append(IndexKeyCodec.row(collection, SortKey(SortValue(priority), child.key)))
                }
                visit(child.node, keys + [child.key])
            }
        }
        visit(model, [])
        return expected.sorted { $0.lexicographicallyPrecedes($1) }
    }
}

/// Rows counted as they are read.
final class CountingRows: TreeReader {
    let rows: MemoryRows
    private(set) var read = 0
    private(set) var scans = 0
    init(_ rows: MemoryRows) { self.rows = rows }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? {
        read += 1
        return try rows.get(key)
    }

    func scan(
        lower: [UInt8], upper: [UInt8]?, reverse: Bool, _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep
    ) throws {
        scans += 1
        try rows.scan(lower: lower, upper: upper, reverse: reverse) { key, value in
            read += 1
            return try visit(key, value)
        }
    }
}
