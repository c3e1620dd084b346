import HatoModel
import Synchronization

/// Caches the parents of pushed children, so that the next push into the same parent reads nothing: a push must verify
/// that no ancestor is a leaf and that its key is free, and both hold below a parent that has children when none of
/// them has that key. (A seek costs a push more than the rest of planning and applying it.)
///
/// For each parent it holds all children after a certain key. Keys of pushes rise, but those of several connections may
/// arrive in another order; therefore the newest ones are held individually.
///
/// One database has one cache; a new one starts empty. It is correct as long as every write of the database is planned
/// with it, in the order of application. A plan that is then not applied does no harm: only what was read is cached,
/// and a plan can only invalidate entries, or mark one more key as taken.
///
/// The cache is bounded and keeps what is in use: of too many parents the least recently written are evicted, and of
/// too many children the older ones are no longer held individually.
public final class ParentMemory: Sendable {
    /// Some 300 bytes each.
    public static let parentsMax = 65_536
    /// The number of a parent's newest children that are held individually.
    public static let childrenMax = 256
    /// The same for all parents together; some 50 bytes each.
    public static let allChildrenMax = 131_072

    /// Longer keys are not cached.
    private static let keyBytesMax = 1_024

    /// What is known about a path without reading.
    enum Answer {
        /// Its parent exists, and the path is free.
        case free
        /// Its parent exists; the path may be taken.
        case perhapsTaken
        case unknown
    }

    private let state: Mutex<State>

    /// An empty cache with these limits.
    public init(
        parentsMax: Int = ParentMemory.parentsMax, childrenMax: Int = ParentMemory.childrenMax,
        allChildrenMax: Int = ParentMemory.allChildrenMax
    ) {
        let limits = Limits(
            parentsOfGeneration: max(1, parentsMax / 2), children: childrenMax, allChildren: allChildrenMax)
        state = Mutex(State(limits: limits))
    }

    func whether(isFree place: PlacedPath) -> Answer {
        guard place.path.depth > 0 else { return .unknown }
        let depth = place.path.depth - 1
        return state.withLock { state in
            guard let children = state.newestChildren(above: place, at: depth) else { return .unknown }
            return children.lack(ChildKey(place.component(depth))) ? .free : .perhapsTaken
        }
    }

    /// The depth of a node at or above a path that is known to be missing.
    func lackingDepth(of place: PlacedPath) -> Int? {
        state.withLock { state in
            // Usually only the last node is new.
            for depth in (0..<min(place.path.depth, state.depthCount)).reversed() {
                guard let children = state.newestChildren(above: place, at: depth) else { continue }
                if children.lack(ChildKey(place.component(depth))) { return depth + 1 }
            }
            return nil
        }
    }

    /// Caches the greatest child of the parent of a path, as read from the store.
    func remember(_ greatest: [UInt8], inParentOf place: PlacedPath) {
        guard place.key.count <= Self.keyBytesMax else { return }
        let children = NewestChildren(behind: ChildKey(greatest[...]))
        state.withLock { $0.remember(children, above: place, at: place.path.depth - 1) }
    }

    /// Applies a planned change: `isRemoval` when nothing is left at the path, `existsDepth` the depth of the deepest
    /// ancestor that is left.
    func noteWrite(at place: PlacedPath, isRemoval: Bool, existsDepth: Int) {
        state.withLock { state in
            state.forgetAtOrBelow(place)
            for depth in 0..<min(place.path.depth, state.depthCount) {
                if existsDepth < depth {
                    state.forget(above: place, at: depth)
                } else if !isRemoval {
                    state.insertChild(above: place, at: depth)
                }
            }
            state.boundChildren()
        }
    }
}

extension ParentMemory {
    private struct Limits {
        let parentsOfGeneration: Int
        let children: Int
        let allChildren: Int
    }

    /// Two generations of parents: an old parent that is written to becomes young, and when there are too many young
    /// ones, they become old, and the previous old ones are evicted. (Tracking the exact order would cost each push
    /// more.)
    private struct State {
        let limits: Limits
        private var young = Generation()
        /// Disjoint from the young ones: of two entries for one parent, the one that is not read would become wrong.
        private var old = Generation()

        init(limits: Limits) { self.limits = limits }

        /// There are no parents from this depth on.
        var depthCount: Int { max(young.depthCount, old.depthCount) }

        func newestChildren(above place: PlacedPath, at depth: Int) -> NewestChildren? {
            young.newestChildren(above: place, at: depth) ?? old.newestChildren(above: place, at: depth)
        }

        mutating func remember(_ children: NewestChildren, above place: PlacedPath, at depth: Int) {
            forget(above: place, at: depth)
            if young.isFull(limits.parentsOfGeneration) {
                old = young
                young = Generation()
            }
            young.add(children, above: place, at: depth)
        }

        /// Does nothing unless the parent is cached.
        mutating func insertChild(above place: PlacedPath, at depth: Int) {
            if young.insertChild(above: place, at: depth, max: limits.children) { return }
            let key = ChildKey(place.component(depth))
            // A parent is not kept for a key below its floor.
            guard let known = old.newestChildren(above: place, at: depth), known.floor < key,
                var children = old.remove(above: place, at: depth)
            else { return }
            _ = children.insert(key, max: limits.children)
            remember(children, above: place, at: depth)
        }

        mutating func forget(above place: PlacedPath, at depth: Int) {
            if young.remove(above: place, at: depth) == nil { _ = old.remove(above: place, at: depth) }
        }

        mutating func forgetAtOrBelow(_ place: PlacedPath) {
            if young.perhapsHasParents(atOrBelow: place) { young = Generation() }
            if old.perhapsHasParents(atOrBelow: place) { old = Generation() }
        }

        /// Visits all parents, but only after as many writes as half the children that may be held; children that are
        /// being written by several connections stay.
        mutating func boundChildren() {
            guard young.childCount + old.childCount > limits.allChildren else { return }
            young.forgetOlderChildren()
            old.forgetOlderChildren()
        }
    }
}

/// Parents that are evicted together: by a write at or above one of them, which may invalidate any of them, or because
/// none of them was written to for long.
private struct Generation {
    /// By the key of the parent's row.
    private var children: [RowKey: NewestChildren] = [:]
    /// The keys of these parents and of all their ancestors. A removed parent leaves its key and those above it behind,
    /// which can only cause the others to be evicted.
    private var above: Set<RowKey> = []
    /// The number of parents at each depth.
    private var countAtDepth: [Int] = []
    /// The number of children held individually.
    private(set) var childCount = 0

    var depthCount: Int { countAtDepth.count }

    /// Keys left behind by removed parents count, too.
    func isFull(_ parentsMax: Int) -> Bool { children.count >= parentsMax || above.count >= 4 * parentsMax }

    func newestChildren(above place: PlacedPath, at depth: Int) -> NewestChildren? {
        hasParents(at: depth) ? children[RowKey(place, depth)] : nil
    }

    /// Few writes are so high up in the tree that they need the look-up.
    func perhapsHasParents(atOrBelow place: PlacedPath) -> Bool {
        countAtDepth.count > place.path.depth && above.contains(RowKey(place, place.path.depth))
    }

    private func hasParents(at depth: Int) -> Bool { depth < countAtDepth.count && countAtDepth[depth] > 0 }

    /// Adds a parent that is not in this generation.
    mutating func add(_ newest: NewestChildren, above place: PlacedPath, at depth: Int) {
        let parent = RowKey(place, depth).kept
        children[parent] = newest
        childCount += newest.keys.count
        if countAtDepth.count <= depth {
            countAtDepth += Array(repeating: 0, count: depth + 1 - countAtDepth.count)
        }
        countAtDepth[depth] += 1
        guard above.insert(parent).inserted else { return }
        for depth in (0..<depth).reversed() {
            let key = RowKey(place, depth)
            // A key was inserted together with all keys above it.
            if above.contains(key) { return }
            above.insert(key.kept)
        }
    }

    /// Returns false when the parent is not in this generation.
    mutating func insertChild(above place: PlacedPath, at depth: Int, max: Int) -> Bool {
        guard hasParents(at: depth), let index = children.index(forKey: RowKey(place, depth)) else { return false }
        childCount += children.values[index].insert(ChildKey(place.component(depth)), max: max)
        return true
    }

    mutating func remove(above place: PlacedPath, at depth: Int) -> NewestChildren? {
        guard hasParents(at: depth), let newest = children.removeValue(forKey: RowKey(place, depth)) else {
            return nil
        }
        countAtDepth[depth] -= 1
        childCount -= newest.keys.count
        return newest
    }

    /// Drops at least half of the children held individually.
    mutating func forgetOlderChildren() {
        childCount = 0
        // In place: a copy of all parents would delay the writer.
        var index = children.startIndex
        while index != children.endIndex {
            children.values[index].forgetOlderHalf()
            childCount += children.values[index].keys.count
            children.formIndex(after: &index)
        }
    }
}

/// The children of one parent after a certain key; some of them may no longer exist.
private struct NewestChildren {
    /// In rising order of their rows.
    private(set) var keys: [ChildKey] = []
    private(set) var floor: ChildKey

    /// - Parameter floor: a key without a child after it.
    init(behind floor: ChildKey) { self.floor = floor }

    /// Whether there is certainly no child with this key.
    func lack(_ key: ChildKey) -> Bool { lack(key, at: place(of: key)) }

    private func lack(_ key: ChildKey, at place: Int) -> Bool {
        place == 0 ? floor < key : keys[place - 1] != key
    }

    /// Returns the change of the number of keys.
    mutating func insert(_ key: ChildKey, max: Int) -> Int {
        let (place, count) = (place(of: key), keys.count)
        guard lack(key, at: place) else { return 0 }
        keys.insert(key, at: place)
        if keys.count > max { forgetOlderHalf() }
        return keys.count - count
    }

    /// Drops the older half; all children after the greatest dropped one stay known. The last one is dropped, too, so
    /// that a parent that is not written to finally holds none.
    mutating func forgetOlderHalf() {
        guard !keys.isEmpty else { return }
        let half = (keys.count + 1) / 2
        floor = keys[half - 1]
        // A new array: the old one would keep its capacity.
        keys = Array(keys[half...])
    }

    /// The number of keys not after this one; usually nearly all.
    private func place(of key: ChildKey) -> Int {
        var (low, high) = (0, keys.count)
        var middle = high - 1
        while low < high {
            if key < keys[middle] { high = middle } else { low = middle + 1 }
            middle = (low + high) / 2
        }
        return low
    }
}

/// The first 24 bytes of a child's encoded key, or all of a shorter one padded with zeros: a push key has 21. They have
/// the order of the keys. Long keys with equal beginnings are treated as one, which can only make a key seem taken.
private struct ChildKey: Comparable {
    private let words: (UInt64, UInt64, UInt64)

    init(_ component: ArraySlice<UInt8>) {
        words = (Self.word(0, component), Self.word(1, component), Self.word(2, component))
    }

    private static func word(_ number: Int, _ component: ArraySlice<UInt8>) -> UInt64 {
        let start = component.startIndex + 8 * number
        var word: UInt64 = 0
        for index in start..<start + 8 {
            word = word << 8 | (index < component.endIndex ? UInt64(component[index]) : 0)
        }
        return word
    }

    static func == (left: ChildKey, right: ChildKey) -> Bool { left.words == right.words }

    static func < (left: ChildKey, right: ChildKey) -> Bool { left.words < right.words }
}

/// The key of a row, or a prefix of it; hashed in one call, unlike an array of bytes.
private struct RowKey: Hashable {
    private let bytes: [UInt8]
    /// The length of the prefix: to look an ancestor up, its key need not be copied out of that of the path.
    private let count: Int

    /// The key of the ancestor at a depth.
    init(_ place: PlacedPath, _ depth: Int) { self.init(place.key, count: place.ends[depth]) }

    private init(_ bytes: [UInt8], count: Int) {
        self.bytes = bytes
        self.count = count
    }

    /// A copy without the bytes after the prefix, to be stored.
    var kept: RowKey { RowKey(Array(bytes[..<count]), count: count) }

    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    static func == (left: RowKey, right: RowKey) -> Bool {
        left.bytes[..<left.count] == right.bytes[..<right.count]
    }
}
