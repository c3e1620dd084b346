import HatoModel

/// Computes the changes of index rows by a write: the `WritePlanner` calls it for every write.
///
/// Every child of an indexed collection has a row, also one without the indexed value. Rows are derived from the nodes
/// before and after the write; the tree is read only where these are not enough (a leaf that became an object, a node
/// too large to read, a parent that vanished with its last child). So a push costs no read here.
public struct IndexDeltas: IndexSet {
    private let definitions: [IndexDefinition]
    private let codec: IndexKeyCodec

    /// Maintains the rows of all definitions, including those that are still building.
    public init(_ catalog: IndexCatalog, codec: IndexKeyCodec) {
        definitions = catalog.definitions
        self.codec = codec
    }

    public func appendRows(for write: IndexedWrite, to rows: inout RowBatch) throws {
        for definition in definitions where definition.mayConcern(write.changes) {
            try DefinitionDeltas(definition: definition, codec: codec, write: write).append(to: &rows)
        }
        try PriorityDeltas(codec: codec, write: write).append(to: &rows)
    }

    /// Up to this many rows of a removed node are deleted one by one; more are deleted by range (many small tombstones
    /// slow reads down).
    static let singleDeletesMax = 1_024
}

/// The changes of the rows of one definition by a write.
private struct DefinitionDeltas {
    let definition: IndexDefinition
    let codec: IndexKeyCodec
    let write: IndexedWrite

    func append(to rows: inout RowBatch) throws {
        let depth = definition.depth
        // By index, not by value: changes that do not match are not even copied.
        let agreeing = write.changes.indices.lazy.filter(agrees)
        var children: [TreePath: [Int]] = [:]
        var order: [TreePath] = []
        for index in agreeing {
            guard write.changes[index].path.depth > depth else {
                appendCollections(of: write.changes[index], to: &rows)
                continue
            }
            if write.changes.count == 1 { return try appendChild(CollectionOfOne(index), to: &rows) }
            // An import changes many children many times: each is looked up once.
            let child = write.changes[index].path.prefix(depth + 1)
            if children[child] == nil { order.append(child) }
            children[child, default: []].append(index)
        }
        for child in order { try appendChild(children[child] ?? [], to: &rows) }
    }

    private func agrees(_ index: Int) -> Bool {
        !write.changes[index].path.isPriority && definition.agrees(with: write.changes[index].path.keys)
    }

    // MARK: A collection, or a node above collections

    private func appendCollections(of change: PathChange, to rows: inout RowBatch) {
        var old: [[UInt8]] = []
        if let before = change.before {
            forEachRow(in: before, at: change.path.keys) { old.append($0) }
        }
        // When many leaves are replaced, all but the first are too large to keep.
        if change.before == nil, change.beforeSkeleton?.childKeys?.isEmpty == true {
            // A leaf is no collection.
        } else if change.before == nil || old.count > IndexDeltas.singleDeletesMax {
            let prefix = codec.prefix(of: definition.id, under: change.path.keys)
            rows.deleteIndexRows(prefix)
        } else {
            for row in old { rows.delete(row.span) }
        }
        if let after = change.after {
            forEachRow(in: after, at: change.path.keys) { rows.putIndexRow($0) }
        }
    }

    /// Visits the row of every child of every collection in a node.
    private func forEachRow(in node: TreeNode, at keys: [TreeKey], _ visit: ([UInt8]) -> Void) {
        guard let children = node.children else { return }
        guard keys.count < definition.depth else {
            let collection = codec.prefix(of: definition.id, collection: keys)
            for child in children {
                let value = SortValue(child.node.node(at: definition.targetKeys[...]))
                visit(IndexKeyCodec.row(collection, SortKey(value, child.key)))
            }
            return
        }
        for child in children where definition.segments[keys.count].matches(child.key) {
            forEachRow(in: child.node, at: keys + [child.key], visit)
        }
    }

    // MARK: One child

    /// - Parameter indices: the changes in one child.
    private func appendChild(_ indices: some Collection<Int>, to rows: inout RowBatch) throws {
        guard let first = indices.first else { return }
        let depth = definition.depth
        let existed = indices.contains { write.changes[$0].existedDepth > depth }
        let exists = indices.contains { write.changes[$0].existsDepth > depth }
        var before = SortValue.null
        var after = SortValue.null
        var isTouched = false
        for index in indices {
            guard let values = try values(of: write.changes[index]) else { continue }
            isTouched = true
            before = values.before
            // Several changes below the value: it is an object as soon as one of them leaves a value.
            if SortValue.compare(after, values.after) < 0 { after = values.after }
        }
        guard isTouched || existed != exists else { return }
        let keys = write.changes[first].path.keys
        let collection = codec.prefix(of: definition.id, collection: keys.prefix(depth))
        let old = existed ? IndexKeyCodec.row(collection, SortKey(before, keys[depth])) : nil
        let new = exists ? IndexKeyCodec.row(collection, SortKey(after, keys[depth])) : nil
        guard old != new else { return }
        if let old { rows.delete(old.span) }
        if let new { rows.putIndexRow(new) }
    }

    /// The child's sort values before and after the change, if the change determines them; nil when it is elsewhere in
    /// the child.
    private func values(of change: PathChange) throws -> (before: SortValue, after: SortValue)? {
        let target = definition.targetKeys
        let written = change.path.keys.dropFirst(definition.depth + 1)
        if target.starts(with: written) {
            let rest = target.dropFirst(written.count)
            let after = SortValue((change.after ?? .empty).node(at: rest))
            guard let before = change.before else { return (try readBefore(change), after) }
            return (SortValue(before.node(at: rest)), after)
        }
        guard written.starts(with: target) else { return nil }
        let valueDepth = definition.depth + 1 + target.count
        let after = change.existsDepth >= valueDepth ? SortValue.object : .null
        if change.replacedLeafDepth == valueDepth { return (try readBefore(change), after) }
        // A leaf above the value means that the value did not exist.
        let existed = change.existedDepth >= valueDepth && (change.replacedLeafDepth ?? .max) > valueDepth
        return (existed ? .object : .null, after)
    }

    private func readBefore(_ change: PathChange) throws -> SortValue {
        let keys = change.path.keys.prefix(definition.depth + 1) + definition.targetKeys
        return try NodeReader(write.reader, codec: write.codec).sortValue(at: TreePath(uncheckedKeys: Array(keys)))
    }
}

extension IndexDefinition {
    /// Returns false for a single change elsewhere, which is the usual case: it saves the other checks.
    fileprivate func mayConcern(_ changes: [PathChange]) -> Bool {
        changes.count != 1 || agrees(with: changes[0].path.keys)
    }
}

extension NodeReader {
    /// The sort value of a child whose indexed value is at `path`; objects are not read.
    func sortValue(at path: TreePath) throws -> SortValue {
        if let leaf = try leaf(at: path) { return .leaf(leaf) }
        return try exists(at: path) ? .object : .null
    }
}

extension RowBatch {
    /// The key of an index row contains everything.
    mutating func putIndexRow(_ row: [UInt8]) {
        let nothing: [UInt8] = []
        put(row.span, nothing.span)
    }

    mutating func deleteIndexRows(_ prefix: [UInt8]) {
        let upper = TreeKeyCodec.upperBound(of: prefix) ?? []
        deleteRange(prefix.span, upper.span)
    }
}
