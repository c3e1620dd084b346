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

    /// Listeners at one path, and what a commit changes for them.
    public struct Match: Sendable {
        /// The listeners.
        public var ids: Set<ID>
        /// The changes at their path, above it and below it, in order; a priority belongs to its node.
        public var indexes: [Int]
    }

    /// The listeners that a commit affects, each once. The cost grows with the changes that each path is affected by,
    /// not with the number of listeners there.
    public func matches(_ changes: [PathChange]) -> [Match] {
        trie.matches(changes.lazy.map(\.path)).map { Match(ids: $0.kept, indexes: $0.indexes) }
    }
}
