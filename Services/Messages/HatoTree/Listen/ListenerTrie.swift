public import HatoModel

/// Finds the listeners that a change concerns: those at its path, above it and below it. The cost grows with the depth
/// of the path and the number of matches, not with the number of listeners.
public struct ListenerTrie<ID: Hashable & Sendable>: Sendable {
    private struct Node: Sendable {
        var children: [TreeKey: Int] = [:]
        var listeners: Set<ID> = []

        var isUnused: Bool { children.isEmpty && listeners.isEmpty }
    }

    /// The root is the first.
    private var nodes = [Node()]
    private var free: [Int] = []
    public private(set) var count = 0

    public init() {}

    public mutating func insert(_ id: ID, at path: TreePath) {
        var index = 0
        for key in path.keys {
            if let next = nodes[index].children[key] {
                index = next
            } else {
                let next = newNode()
                nodes[index].children[key] = next
                index = next
            }
        }
        if nodes[index].listeners.insert(id).inserted { count += 1 }
    }

    public mutating func remove(_ id: ID, at path: TreePath) {
        var trail = [0]
        for key in path.keys {
            guard let next = nodes[trail[trail.count - 1]].children[key] else { return }
            trail.append(next)
        }
        guard nodes[trail[trail.count - 1]].listeners.remove(id) != nil else { return }
        count -= 1
        for depth in stride(from: path.keys.count, to: 0, by: -1) where nodes[trail[depth]].isUnused {
            nodes[trail[depth - 1]].children[path.keys[depth - 1]] = nil
            free.append(trail[depth])
        }
    }

    private mutating func newNode() -> Int {
        if let index = free.popLast() { return index }
        nodes.append(Node())
        return nodes.count - 1
    }

    /// Visits every listener at, above or below `path`; a priority belongs to its node.
    public func forEachMatch(of path: TreePath, _ visit: (ID) -> Void) {
        var index = 0
        for key in path.keys {
            for id in nodes[index].listeners { visit(id) }
            guard let next = nodes[index].children[key] else { return }
            index = next
        }
        var open = [index]
        while let index = open.popLast() {
            for id in nodes[index].listeners { visit(id) }
            open.append(contentsOf: nodes[index].children.values)
        }
    }

    /// The listeners that a commit concerns, each once.
    public func matches(_ changes: [PathChange]) -> Set<ID> {
        var matches: Set<ID> = []
        for change in changes { forEachMatch(of: change.path) { matches.insert($0) } }
        return matches
    }
}
