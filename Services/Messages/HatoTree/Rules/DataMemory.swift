import HatoModel
import HatoRules
import Synchronization

/// Caches stored data that rules have read, so that the next write to the same chat needs no look-up: its members,
/// whether it exists. (Look-ups, above all the start of a scan, were most of the cost of rules.)
///
/// It is correct for the same reason as `ParentMemory`: entries are read in the turn of a write, and every write of the
/// database is planned with the cache, in the order of application; a plan's changes invalidate their entries. A plan
/// that is then not applied can only invalidate entries.
///
/// The cache is bounded: when it is full it is cleared.
final class DataMemory: Sendable {
    /// Usually some 200 bytes each.
    private static let placesMax = 65_536
    /// Longer paths and texts are not cached.
    private static let pathBytesMax = 1_024
    static let textBytesMax = 256

    /// The cached facts about one node; nil: unknown.
    struct Known {
        var leaf: TreeLeaf??
        var exists: Bool?
        var hasChildren: Bool?
        var priority: TreePriority??

        fileprivate var isEmpty: Bool { exists == nil && leaf == nil && hasChildren == nil && priority == nil }

        /// Removes facts that a change may have invalidated.
        fileprivate mutating func forget(_ change: PathChange, depth: Int) {
            if leaf != nil, RulesRead.Aspect.value.isTouched(at: depth, by: change) { leaf = nil }
            if exists != nil, RulesRead.Aspect.existence.isTouched(at: depth, by: change) { exists = nil }
            if hasChildren != nil, RulesRead.Aspect.children.isTouched(at: depth, by: change) { hasChildren = nil }
            if priority != nil, RulesRead.Aspect.priority.isTouched(at: depth, by: change) { priority = nil }
        }
    }

    private let state = Mutex(KnownPlaces())

    enum Answer<Value> {
        case known(Value)
        /// The node and everything below it are missing.
        case lacking
        case unknown
    }

    func look<Value>(at path: TreePath, _ aspect: KnownAspect<Value>) -> Answer<Value> {
        state.withLock { state in
            if state.lacking?.isAtOrAbove(path) == true { return .lacking }
            return state.place(at: path).flatMap { aspect.read($0.known) }.map { .known($0) } ?? .unknown
        }
    }

    func remember<Value>(_ value: Value, at path: TreePath, _ aspect: KnownAspect<Value>) {
        guard aspect.isKept(value), isShort(path) else { return }
        state.withLock { state in
            if state.count >= Self.placesMax { state = KnownPlaces() }
            aspect.write(&state.make(path).known, value)
        }
    }

    /// Notes that nothing exists at or below this path. Kept for one path, until the next plan: the write's own.
    func rememberLack(of path: TreePath) { state.withLock { $0.lacking = path } }

    /// Paths that are too long for the cache are read each time.
    private func isShort(_ path: TreePath) -> Bool {
        path.keys.reduce(0) { $0 + $1.text.utf8.count } <= Self.pathBytesMax
    }

    func forget(_ changes: [PathChange]) {
        state.withLock { state in
            state.lacking = nil
            if state.isEmpty { return }
            for change in changes { state.forget(change) }
        }
    }
}

/// One kind of fact about a node.
struct KnownAspect<Value: Sendable>: Sendable {
    /// The value for a missing node.
    let ofNothing: Value
    let read: @Sendable (DataMemory.Known) -> Value?
    let write: @Sendable (inout DataMemory.Known, Value) -> Void
    /// Whether a value is small enough.
    var isKept: @Sendable (Value) -> Bool = { _ in true }
}

enum KnownAspects {
    static let leaf = KnownAspect<TreeLeaf?>(
        ofNothing: nil, read: { $0.leaf }, write: { $0.leaf = .some($1) }, isKept: { $0?.isShort != false })
    static let existence = KnownAspect(ofNothing: false, read: { $0.exists }, write: { $0.exists = $1 })
    static let children = KnownAspect(ofNothing: false, read: { $0.hasChildren }, write: { $0.hasChildren = $1 })
    static let priority = KnownAspect<TreePriority?>(
        ofNothing: nil, read: { $0.priority }, write: { $0.priority = .some($1) },
        isKept: { $0?.leaf.isShort != false })
}

extension TreeLeaf {
    fileprivate var isShort: Bool {
        if case .string(let text) = self { text.utf8.count <= DataMemory.textBytesMax } else { true }
    }
}

/// The nodes of a tree with cached facts. Rules read nodes one after the other beside and below the path of a write:
/// each walk starts at the common part with the previous walk.
private struct KnownPlaces {
    final class Place {
        let key: TreeKey
        var known = DataMemory.Known()
        var children: [TreeKey: Place] = [:]

        init(_ key: TreeKey) { self.key = key }

        /// Removes facts below that a change above may have invalidated; returns the number of removed nodes.
        func forgetBelow(_ change: PathChange, depth: Int) -> Int {
            var gone = 0
            for (key, child) in children {
                child.known.forget(change, depth: depth + 1)
                gone += child.forgetBelow(change, depth: depth + 1)
                guard child.known.isEmpty, child.children.isEmpty else { continue }
                children[key] = nil
                gone += 1
            }
            return gone
        }
    }

    private(set) var count = 0
    /// A path with nothing at or below it.
    var lacking: TreePath?
    private let root = Place(TreeKey(unchecked: ""))
    /// The nodes of the last walk below the root: each is a child of the previous one.
    private var trail: [Place] = []

    /// The root is not counted, but it may have facts.
    var isEmpty: Bool { count == 0 && root.known.isEmpty }

    /// Nil: nothing is known of it or of nodes below it.
    mutating func place(at path: TreePath) -> Place? { walk(path) == path.depth ? last(path.depth) : nil }

    private func last(_ depth: Int) -> Place { depth == 0 ? root : trail[depth - 1] }

    mutating func make(_ path: TreePath) -> Place {
        var depth = walk(path)
        var place = last(depth)
        // The last walk may have taken another branch from here.
        if depth < path.depth { trail.removeSubrange(depth...) }
        while depth < path.depth {
            let next = Place(path.keys[depth])
            place.children[next.key] = next
            trail.append(next)
            count += 1
            depth += 1
            place = next
        }
        return place
    }

    /// The number of known nodes along the path; they are the first ones of the trail.
    private mutating func walk(_ path: TreePath) -> Int {
        let keys = path.keys
        let limit = min(keys.count, trail.count)
        var depth = 0
        while depth < limit, trail[depth].key == keys[depth] { depth += 1 }
        if depth == keys.count { return depth }
        var place = last(depth)
        var isCut = depth == trail.count
        while depth < keys.count, let next = place.children[keys[depth]] {
            if !isCut { trail.removeSubrange(depth...) }
            isCut = true
            trail.append(next)
            place = next
            depth += 1
        }
        return depth
    }

    mutating func forget(_ change: PathChange) {
        let path = change.path.node
        let depth = walk(path)
        for above in 0...depth { last(above).known.forget(change, depth: above) }
        // A change of a node's priority does not affect what is below it.
        if depth == path.depth, !change.path.isPriority { forgetBelow(change, depth: depth) }
        prune(from: depth)
    }

    private mutating func forgetBelow(_ change: PathChange, depth: Int) {
        let gone = last(depth).forgetBelow(change, depth: depth)
        guard gone > 0 else { return }
        count -= gone
        trail.removeSubrange(depth...)
    }

    /// Removes nodes without facts, from the last of the trail's first `depth` upwards.
    private mutating func prune(from depth: Int) {
        var left = depth
        while left > 0, trail[left - 1].known.isEmpty, trail[left - 1].children.isEmpty {
            last(left - 1).children[trail[left - 1].key] = nil
            left -= 1
        }
        guard left < depth else { return }
        count -= depth - left
        trail.removeSubrange(left...)
    }
}
