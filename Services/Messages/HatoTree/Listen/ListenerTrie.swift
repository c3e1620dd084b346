public import HatoModel

/// Finds the listeners that a change affects: those at its path, above it and below it. The cost grows with the depth
/// of the path and the number of matches, not with the number of listeners.
public struct ListenerTrie<ID: Hashable & Sendable>: Sendable {
    private var trie = PathTrie<Set<ID>>()
    /// The number of identifiers.
    public private(set) var count = 0

    public init() {}

    /// Adds an identifier at a path.
    public mutating func insert(_ id: ID, at path: TreePath) {
        var isNew = false
        trie.change(at: path) { listeners in
            var all = listeners.take() ?? []
            isNew = all.insert(id).inserted
            listeners = all
        }
        if isNew { count += 1 }
    }

    /// Removes an identifier from a path.
    public mutating func remove(_ id: ID, at path: TreePath) {
        var wasThere = false
        trie.change(at: path) { listeners in
            guard var all = listeners.take() else { return }
            wasThere = all.remove(id) != nil
            listeners = all.isEmpty ? nil : all
        }
        if wasThere { count -= 1 }
    }

    /// Visits every listener at, above or below `path`; a priority belongs to its node.
    public func forEachMatch(of path: TreePath, _ visit: (ID) -> Void) {
        trie.visit(path) { _, listeners in
            for id in listeners { visit(id) }
        } atOrBelow: { _, listeners in
            for id in listeners { visit(id) }
        }
    }

    /// The listeners that a commit affects, each once.
    public func matches(_ changes: [PathChange]) -> Set<ID> {
        var matches: Set<ID> = []
        for change in changes { forEachMatch(of: change.path) { matches.insert($0) } }
        return matches
    }
}
