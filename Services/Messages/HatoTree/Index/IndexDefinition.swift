public import HatoModel
public import HatoRules

/// One index: in every collection that the pattern matches, children are ordered by their value at the target.
///
/// A definition keeps its id as long as rules declare it; the id is part of its rows' keys and never reused, so that
/// rows of a dropped index can be deleted in the background.
public struct IndexDefinition: Sendable, Hashable {
    /// Unique in its database.
    public var id: UInt32
    /// The keys and wildcards that lead to the indexed collections.
    public var segments: [RulesIndex.Segment]
    /// The indexed part of each child.
    public var target: RulesIndex.Target

    public init(id: UInt32, segments: [RulesIndex.Segment], target: RulesIndex.Target) {
        self.id = id
        self.segments = segments
        self.target = target
    }

    /// The depth of its collections.
    public var depth: Int { segments.count }

    /// The keys from a child to its indexed value.
    var targetKeys: [TreeKey] {
        switch target {
        case .value: []
        case .child(let path): path.keys
        }
    }

    /// Whether `keys`, up to the shorter length, match the keys of a collection.
    func agrees(with keys: [TreeKey]) -> Bool {
        for (segment, key) in zip(segments, keys) where !segment.matches(key) { return false }
        return true
    }

    /// The deepest node with all its collections at or below it.
    public var trunk: TreePath {
        var keys: [TreeKey] = []
        for segment in segments {
            guard case .key(let key) = segment else { break }
            keys.append(key)
        }
        return TreePath(uncheckedKeys: keys)
    }

    /// Whether `path` is one of its collections.
    public func covers(_ path: TreePath) -> Bool {
        !path.isPriority && path.depth == depth && agrees(with: path.keys)
    }

    /// Whether rules declare the same index, whatever the names of wildcards.
    func isDeclared(by rule: RulesIndex) -> Bool {
        guard target == rule.target, segments.count == rule.segments.count else { return false }
        return zip(segments, rule.segments).allSatisfy { mine, theirs in
            switch (mine, theirs) {
            case (.key(let mine), .key(let theirs)): mine == theirs
            case (.wildcard(_, let mine), .wildcard(_, let theirs)): mine == theirs
            default: false
            }
        }
    }

    /// The pattern as in `/chats/{chat}/messages`.
    public var pattern: FeedPattern {
        FeedPattern(
            segments: segments.map {
                switch $0 {
                case .key(let key): .key(key)
                case .wildcard(let name, _): .any(String(name.dropFirst()))
                }
            })
    }

    /// The target as in `.indexOn`: a child path, or `.value`.
    public var on: String {
        switch target {
        case .value: ".value"
        case .child(let path): path.keys.map(\.text).joined(separator: "/")
        }
    }
}

extension RulesIndex.Segment {
    func matches(_ key: TreeKey) -> Bool {
        switch self {
        case .key(let name): name == key
        case .wildcard(_, let hidden): !hidden.contains(key)
        }
    }
}
