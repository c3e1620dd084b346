import HatoModel

/// Values at paths of a tree, found by the path of a change: those above it, at it and below it. The cost grows with
/// the depth of the path and the number of matches, not with the number of values.
struct PathTrie<Kept: Sendable>: Sendable {
    private struct Node: Sendable {
        var children: [TreeKey: Int] = [:]
        var kept: Kept?

        var isUnused: Bool { children.isEmpty && kept == nil }
    }

    /// The root is the first.
    private var nodes = [Node()]
    private var free: [Int] = []

    /// Changes the value at `path`; nil: none.
    mutating func change(at path: TreePath, _ body: (inout Kept?) -> Void) {
        var trail = [0]
        for key in path.keys {
            let index = trail[trail.count - 1]
            if let next = nodes[index].children[key] {
                trail.append(next)
            } else {
                let next = newNode()
                nodes[index].children[key] = next
                trail.append(next)
            }
        }
        body(&nodes[trail[trail.count - 1]].kept)
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

    func kept(at path: TreePath) -> Kept? {
        var index = 0
        for key in path.keys {
            guard let next = nodes[index].children[key] else { return nil }
            index = next
        }
        return nodes[index].kept
    }

    /// Visits the values above the node of `path`, with their depths, and then those at it and below.
    func visit(_ path: TreePath, above: (Int, Kept) -> Void, atOrBelow: (_ isBelow: Bool, Kept) -> Void) {
        visitNodes(path) { depth, node in
            if let kept = nodes[node].kept { above(depth, kept) }
        } atOrBelow: { isBelow, node in
            if let kept = nodes[node].kept { atOrBelow(isBelow, kept) }
        }
    }

    /// The values that some paths find as in `visit`, each once, with the indexes of the paths that find it.
    func matches(_ paths: some Sequence<TreePath>) -> [(kept: Kept, indexes: [Int])] {
        var matches: [(kept: Kept, indexes: [Int])] = []
        var places: [Int: Int] = [:]
        for (index, path) in paths.enumerated() {
            func add(_ node: Int) {
                guard let kept = nodes[node].kept else { return }
                if let place = places[node] {
                    matches[place].indexes.append(index)
                } else {
                    places[node] = matches.count
                    matches.append((kept, [index]))
                }
            }
            visitNodes(path) { _, node in
                add(node)
            } atOrBelow: { _, node in
                add(node)
            }
        }
        return matches
    }

    private func visitNodes(
        _ path: TreePath, above: (_ depth: Int, Int) -> Void, atOrBelow: (_ isBelow: Bool, Int) -> Void
    ) {
        var index = 0
        for (depth, key) in path.keys.enumerated() {
            above(depth, index)
            guard let next = nodes[index].children[key] else { return }
            index = next
        }
        atOrBelow(false, index)
        var open = Array(nodes[index].children.values)
        while let index = open.popLast() {
            atOrBelow(true, index)
            open.append(contentsOf: nodes[index].children.values)
        }
    }
}
