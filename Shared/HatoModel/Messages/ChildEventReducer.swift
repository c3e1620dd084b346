/// A change of one child of a listener's node, in the order of its query (spec §8.5).
public enum ChildEvent: Sendable, Hashable {
    case removed(TreeKey, TreeNode)
    /// `previous` is the child before it in the order of the query; nil for the first.
    case added(TreeKey, TreeNode, previous: TreeKey?)
    /// The value by which it is ordered has changed, though its rank may be the same; a `changed` follows.
    case moved(TreeKey, TreeNode, previous: TreeKey?)
    case changed(TreeKey, TreeNode, previous: TreeKey?)
}

/// Turns a listener's `messages.event` notifications into the events of an app: the value, and which children were
/// added, changed, moved and removed (spec §8.5). The client's side of a listener.
///
/// For one notification the events come in this order: all removed, added, moved, changed, and within a kind in the
/// order of the query (removed ones in the previous order). The value comes after them, once, also when it is null at
/// the start.
public struct ChildEventReducer: Sendable {
    /// The query of the listener.
    public let query: TreeQuery
    /// The value of the listener; for a query, the selected children.
    public private(set) var node: TreeNode = .empty
    /// The children in the order of the query.
    public private(set) var sortKeys: [SortKey] = []

    public init(_ query: TreeQuery = TreeQuery()) { self.query = query }

    /// The children with their nodes, in the order of the query.
    public var children: [TreeChild] { sortKeys.map { TreeChild(key: $0.key, node: node.child($0.key)) } }

    /// Applies the events of a notification.
    ///
    /// - Throws: `ArgumentError` for a wrong path or value; then nothing has changed.
    public mutating func apply(_ events: [Messages.Event.Entry]) throws -> [ChildEvent] {
        var new = node
        var touched: Set<TreeKey>? = []
        for event in events {
            let path = try TreePath(event.path)
            switch event.type {
            case .put:
                try Self.put(event.data, at: path, in: &new, &touched)
            case .patch:
                guard let members = event.data.object?.members else {
                    throw ArgumentError(reason: "invalid_event", "The data of a patch must be an object")
                }
                let sortKeys = try members.map { (path: try path.appending(TreePath($0.name)), data: $0.value) }
                // Applied as one change, independently of the order of the members: a node that loses one child and
                // gets another is never empty in between, which would remove its priority; and only an existing node
                // can have one.
                let (priorities, nodes) = (sortKeys.filter(\.path.isPriority), sortKeys.filter { !$0.path.isPriority })
                let (removals, values) = (nodes.filter(\.data.isNull), nodes.filter { !$0.data.isNull })
                for sortKey in values + removals + priorities {
                    try Self.put(sortKey.data, at: sortKey.path, in: &new, &touched)
                }
            }
        }
        return replace(new, touched: touched)
    }

    /// - Parameter touched: the children written to; nil when all may differ.
    private static func put(
        _ data: JSONValue, at path: TreePath, in node: inout TreeNode, _ touched: inout Set<TreeKey>?
    ) throws {
        let value = try TreeNode(json: data, at: path.node)
        node = node.setting(value, at: path)
        if let key = path.keys.first { touched?.insert(key) } else { touched = nil }
        // Removing the last child removes the node, and a leaf may become an object: then all children are affected.
        if node.children == nil { touched = nil }
    }

    private mutating func replace(_ new: TreeNode, touched: Set<TreeKey>?) -> [ChildEvent] {
        let old = node
        let keys = touched ?? Set(old.childKeys).union(new.childKeys)
        var removed: [(sortKey: SortKey, node: TreeNode)] = []
        var written: [(sortKey: SortKey, before: SortKey?, isSame: Bool)] = []
        for key in keys {
            let (before, after) = (old.child(key), new.child(key))
            let oldPlace = before.isEmpty ? nil : SortKey(query.sortValue(of: before), key)
            let newPlace = after.isEmpty ? nil : SortKey(query.sortValue(of: after), key)
            if let newPlace {
                written.append((newPlace, oldPlace, before == after))
            } else if let oldPlace {
                removed.append((oldPlace, before))
            }
        }
        node = new
        reorder(removing: removed.map(\.sortKey) + written.compactMap(\.before), adding: written.map(\.sortKey))
        removed.sort { $0.sortKey < $1.sortKey }
        written = written.filter { !$0.isSame }.sorted { $0.sortKey < $1.sortKey }
        var events = removed.map { ChildEvent.removed($0.sortKey.key, $0.node) }
        for entry in written where entry.before == nil {
            events.append(.added(entry.sortKey.key, new.child(entry.sortKey.key), previous: previous(entry.sortKey)))
        }
        for entry in written where entry.before.map({ $0 != entry.sortKey }) ?? false {
            events.append(.moved(entry.sortKey.key, new.child(entry.sortKey.key), previous: previous(entry.sortKey)))
        }
        for entry in written where entry.before != nil {
            events.append(.changed(entry.sortKey.key, new.child(entry.sortKey.key), previous: previous(entry.sortKey)))
        }
        return events
    }

    private mutating func reorder(removing old: [SortKey], adding new: [SortKey]) {
        // A few are inserted one by one; many are sorted again.
        guard old.count + new.count <= 16 else {
            let gone = Set(old.map(\.key))
            sortKeys = (sortKeys.filter { !gone.contains($0.key) } + new).sorted()
            return
        }
        for sortKey in old {
            let index = index(of: sortKey)
            if index < sortKeys.count, sortKeys[index].key == sortKey.key { sortKeys.remove(at: index) }
        }
        for sortKey in new { sortKeys.insert(sortKey, at: index(of: sortKey)) }
    }

    /// The index of a child, or the index at which it would be inserted.
    private func index(of sortKey: SortKey) -> Int {
        var low = 0
        var high = sortKeys.count
        while low < high {
            let middle = (low + high) / 2
            if sortKeys[middle] < sortKey { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func previous(_ sortKey: SortKey) -> TreeKey? {
        let index = index(of: sortKey)
        return index > 0 ? sortKeys[index - 1].key : nil
    }
}

extension TreeNode {
    fileprivate var childKeys: [TreeKey] { children?.map(\.key) ?? [] }
}
