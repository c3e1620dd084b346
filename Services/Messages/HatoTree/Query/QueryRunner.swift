public import HatoModel

/// Executes queries on the rows of one state of a database.
///
/// With an index it reads the index rows of the selected children and then those children, whatever the number of other
/// children.
public struct QueryRunner {
    let nodes: NodeReader
    let indexCodec: IndexKeyCodec
    let bytesMax: Int
    /// The cache of the starts of last rows; nil: none. One for each database.
    public var newest: NewestRows?

    /// - Parameter bytesMax: the limit of one result, as JSON.
    public init(_ reader: any TreeReader, codec: TreeKeyCodec, indexCodec: IndexKeyCodec, bytesMax: Int = .max) {
        nodes = NodeReader(reader, codec: codec)
        self.indexCodec = indexCodec
        self.bytesMax = bytesMax
    }

    /// The children of `path` that the query selects, in query order.
    ///
    /// - Parameter keyBytesMax: the limit of the bytes of all their keys.
    /// - Throws: `TreeError.tooBig` as soon as their keys exceed it: a result with these keys would be larger.
    public func places(
        _ query: TreeQuery, at path: TreePath, by plan: QueryPlan, keyBytesMax: Int = .max
    ) throws -> [SortPlace] {
        var found = Found(query, keyBytesMax: keyBytesMax)
        switch plan {
        case .keys:
            try addKeys(of: path, range: KeyRange(query), to: &found)
        case .index(let definition):
            try addRows(of: indexCodec.prefix(of: definition.id, collection: path.keys), at: path, to: &found)
        case .priorities:
            try addByPriority(at: path, to: &found)
        case .everyChild:
            return try everyPlace(query, at: path)
        }
        return found.inOrder
    }

    /// The position of a child in the order of a query; nil when the child does not exist.
    public func place(of key: TreeKey, at path: TreePath, in query: TreeQuery) throws -> SortPlace? {
        let child = TreePath(uncheckedKeys: path.keys + [key])
        switch query.order {
        case .value:
            let value = try nodes.sortValue(at: child)
            return value == .null ? nil : SortPlace(value, key)
        case .child(let target):
            let value = try nodes.sortValue(at: TreePath(uncheckedKeys: child.keys + target.keys))
            return try value != .null || nodes.exists(at: child) ? SortPlace(value, key) : nil
        case .priority:
            let value = SortValue(try nodes.priority(at: child))
            return try value != .null || nodes.exists(at: child) ? SortPlace(value, key) : nil
        case .key:
            return try nodes.exists(at: child) ? SortPlace(.null, key) : nil
        }
    }

    /// Writes the `keys` of a result: the order, for JSON readers that do not keep it.
    public static func writeKeys(_ places: [SortPlace], to writer: inout JSONWriter) {
        writer.beginArray()
        for place in places { writer.write(place.key.text) }
        writer.endArray()
    }

    /// The selected children as a node, for comparison and for rules.
    public func node(_ places: [SortPlace], at path: TreePath) throws -> TreeNode {
        .object(
            unsorted: try places.map {
                TreeChild(key: $0.key, node: try nodes.node(at: TreePath(uncheckedKeys: path.keys + [$0.key])))
            })
    }

    // MARK: Without an index

    private func everyPlace(_ query: TreeQuery, at path: TreePath) throws -> [SortPlace] {
        var places: [SortPlace] = []
        // A limit set in code is not bounded like one from JSON; more children than this are never in memory.
        let countMax = query.limit.map { 2 * min($0.count, 1 << 40) + 1_024 } ?? .max
        try nodes.forEachChildKey(of: path) { key in
            if let place = try place(of: key, at: path, in: query), query.contains(place) { places.append(place) }
            if places.count >= countMax { places = Self.limited(places.sorted(), query.limit) }
            return true
        }
        return Self.limited(places.sorted(), query.limit)
    }

    static func limited(_ places: [SortPlace], _ limit: TreeQuery.Limit?) -> [SortPlace] {
        switch limit {
        case nil: places
        case .first(let count): Array(places.prefix(count))
        case .last(let count): Array(places.suffix(count))
        }
    }
}

extension QueryRunner {
    /// The children found so far, from the end that the limit counts from.
    struct Found {
        let query: TreeQuery
        let isReverse: Bool
        private let countMax: Int
        private let keyBytesMax: Int
        private var keyBytes = 0
        private(set) var places: [SortPlace] = []

        init(_ query: TreeQuery, keyBytesMax: Int = .max) {
            self.query = query
            self.keyBytesMax = keyBytesMax
            if case .last = query.limit { isReverse = true } else { isReverse = false }
            countMax = query.limit?.count ?? .max
        }

        var isFull: Bool { places.count >= countMax }

        mutating func add(_ place: SortPlace) throws(TreeError) {
            keyBytes += place.key.text.utf8.count
            if keyBytes > keyBytesMax { throw .tooBig(bytesMax: keyBytesMax) }
            places.append(place)
        }

        var inOrder: [SortPlace] { isReverse ? places.reversed() : places }
    }
}
