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
    public private(set) var places: [SortKey] = []

    public init(_ query: TreeQuery = TreeQuery()) { self.query = query }

    /// The children with their nodes, in the order of the query.
    public var children: [TreeChild] { places.map { TreeChild(key: $0.key, node: node.child($0.key)) } }

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
                let places = try members.map { (path: try path.appending(TreePath($0.name)), data: $0.value) }
                // Applied as one change, independently of the order of the members: a node that loses one child and
                // gets another is never empty in between, which would remove its priority; and only an existing node
                // can have one.
                let (priorities, nodes) = (places.filter(\.path.isPriority), places.filter { !$0.path.isPriority })
                let (removals, values) = (nodes.filter(\.data.isNull), nodes.filter { !$0.data.isNull })
                for place in values + removals + priorities {
                    try Self.put(place.data, at: place.path, in: &new, &touched)
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
        var removed: [(place: SortKey, node: TreeNode)] = []
        var written: [(place: SortKey, before: SortKey?, isSame: Bool)] = []
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
        reorder(removing: removed.map(\.place) + written.compactMap(\.before), adding: written.map(\.place))
        removed.sort { $0.place < $1.place }
        written = written.filter { !$0.isSame }.sorted { $0.place < $1.place }
        var events = removed.map { ChildEvent.removed($0.place.key, $0.node) }
        for entry in written where entry.before == nil {
            events.append(.added(entry.place.key, new.child(entry.place.key), previous: previous(entry.place)))
        }
        for entry in written where entry.before.map({ $0 != entry.place }) ?? false {
            events.append(.moved(entry.place.key, new.child(entry.place.key), previous: previous(entry.place)))
        }
        for entry in written where entry.before != nil {
            events.append(.changed(entry.place.key, new.child(entry.place.key), previous: previous(entry.place)))
        }
        return events
    }

    private mutating func reorder(removing old: [SortKey], adding new: [SortKey]) {
        // A few are inserted one by one; many are sorted again.
        guard old.count + new.count <= 16 else {
            let gone = Set(old.map(\.key))
            places = (places.filter { !gone.contains($0.key) } + new).sorted()
            return
        }
        for place in old {
            let index = index(of: place)
            if index < places.count, places[index].key == place.key { places.remove(at: index) }
        }
        for place in new { places.insert(place, at: index(of: place)) }
    }

    /// The index of a child, or the index at which it would be inserted.
    private func index(of place: SortKey) -> Int {
        var low = 0
        var high = places.count
        while low < high {
            let middle = (low + high) / 2
            if places[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func previous(_ place: SortKey) -> TreeKey? {
        let index = index(of: place)
        return index > 0 ? places[index - 1].key : nil
    }
}

extension TreeNode {
    fileprivate var childKeys: [TreeKey] { children?.map(\.key) ?? [] }
}
