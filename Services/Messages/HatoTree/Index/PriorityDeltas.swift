import HatoModel

/// The changes of the automatic index of priorities by a write: it has a row for every child with a priority, in any
/// collection.
struct PriorityDeltas {
    let codec: IndexKeyCodec
    let write: IndexedWrite

    func append(to rows: inout RowBatch) throws {
        // A span copies no change.
        let changes = write.changes.span
        for index in changes.indices {
            if changes[index].path.isPriority {
                appendPriority(changes[index], to: &rows)
            } else if !changes[index].surelyHasNone {
                try appendNode(changes[index], to: &rows)
            }
        }
        try appendVanished(to: &rows)
    }

    /// The row of the node at these keys; the root has no parent and no row.
    private func row(_ keys: [TreeKey], _ priority: TreePriority?) -> [UInt8]? {
        guard let priority, let key = keys.last else { return nil }
        let collection = codec.prefix(of: IndexKeyCodec.priorities, collection: keys.dropLast())
        return IndexKeyCodec.row(collection, SortKey(SortValue(priority), key))
    }

    private func appendPriority(_ change: PathChange, to rows: inout RowBatch) {
        let keys = change.path.keys
        let old = row(keys, change.before?.leaf.flatMap(TreePriority.init))
        let isThere = change.existsDepth >= keys.count
        let new = isThere ? row(keys, change.after?.leaf.flatMap(TreePriority.init)) : nil
        if let old, old != new { rows.delete(old.span) }
        if let new { rows.putIndexRow(new) }
    }

    private func appendNode(_ change: PathChange, to rows: inout RowBatch) throws {
        let keys = change.path.keys
        var old: [[UInt8]] = []
        if let before = change.before { forEachRow(in: before, at: keys) { old.append($0) } }
        if change.before == nil || old.count > IndexDeltas.singleDeletesMax {
            if change.before != nil || change.beforeSkeleton?.mayHavePrioritiesBelow != false {
                rows.deleteIndexRows(codec.prefix(of: IndexKeyCodec.priorities, under: keys))
            }
            // Its own row is in its parent's collection.
            if let row = row(keys, try ownPriority(change)) { rows.delete(row.span) }
        } else {
            for row in old { rows.delete(row.span) }
        }
        if let after = change.after { forEachRow(in: after, at: keys) { rows.putIndexRow($0) } }
    }

    private func ownPriority(_ change: PathChange) throws -> TreePriority? {
        if let before = change.before { return before.priority }
        if let skeleton = change.beforeSkeleton, !skeleton.isShallow, skeleton.tree.priority == nil { return nil }
        return try reader.priority(at: change.path)
    }

    private func forEachRow(in node: TreeNode, at keys: [TreeKey], _ visit: ([UInt8]) -> Void) {
        if let row = row(keys, node.priority) { visit(row) }
        guard let children = node.children else { return }
        let sorted = children.sorted
        for index in sorted.indices {
            // Most leaves have no priority: the path is not copied for them.
            if case .leaf(_, nil) = sorted[index].node { continue }
            forEachRow(in: sorted[index].node, at: keys + [sorted[index].key], visit)
        }
    }

    /// Parents that vanished with their last child lost their priorities.
    private func appendVanished(to rows: inout RowBatch) throws {
        // Many changes may have emptied the same parent.
        var seen: Set<TreePath> = []
        let changes = write.changes.span
        for index in changes.indices {
            let keys = changes[index].path.keys
            let existsDepth = changes[index].existsDepth
            let deepest = min(changes[index].existedDepth, changes[index].path.isPriority ? keys.count : keys.count - 1)
            guard deepest > existsDepth else { continue }
            for depth in (existsDepth + 1)...deepest {
                let ancestor = TreePath(uncheckedKeys: Array(keys.prefix(depth)))
                guard seen.insert(ancestor).inserted else { continue }
                if let row = row(ancestor.keys, try reader.priority(at: ancestor)) { rows.delete(row.span) }
            }
        }
    }

    private var reader: NodeReader { NodeReader(write.reader, codec: write.codec) }
}

extension PathChange {
    /// Whether leaves without priorities are written to an empty path, as in most pushes.
    fileprivate var surelyHasNone: Bool {
        guard case .empty? = before else { return false }
        switch after {
        case .empty?, .leaf(_, nil)?: return true
        case .object(let children, nil)?:
            let sorted = children.sorted
            return sorted.indices.allSatisfy { if case .leaf(_, nil) = sorted[$0].node { true } else { false } }
        default: return false
        }
    }
}
