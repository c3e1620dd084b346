import HatoModel
import Synchronization

/// Remembers the parents that children were pushed to, so that the next push into the same parent reads nothing: a
/// push must know that no leaf stands above it and that its key is free, and both are true below a parent that has
/// children when none of them has that key. (A seek costs a push more than all the rest of planning and applying it.)
///
/// Of each parent it knows all children that come behind a certain key. Keys of pushes rise, but those of several
/// connections overtake each other on their way; the newest ones are kept one by one for that.
///
/// One database has one memory, or after it was replaced a new empty one. It stays right as long as every write of
/// the database is planned with it, in the order of application. A plan that is then not applied does no harm: only
/// what was read is remembered, and what is planned can but make it forget, or believe that one more key is taken.
///
/// What is remembered is bounded, and what is in use stays known when it is full: of too many parents those are
/// forgotten that were not written into for longest, and of too many children the older ones are no longer known one
/// by one.
public final class ParentMemory: Sendable {
    /// Some 300 bytes each.
    public static let parentsMax = 65_536
    /// So many of a parent's newest children are known one by one.
    public static let childrenMax = 256
    /// Of all parents together; some 50 bytes each.
    public static let allChildrenMax = 131_072

    /// Longer keys are not remembered.
    private static let keyBytesMax = 1_024

    /// What can be said of a place without reading.
    enum Answer {
        /// Its parent is there, and it is not.
        case free
        /// Its parent is there; perhaps it is, too.
        case perhapsTaken
        case unknown
    }

    private let state: Mutex<State>

    /// A cache that holds what is given.
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

    /// The depth of a node at a place or above it of which it is known that it is not there.
    func lackingDepth(of place: PlacedPath) -> Int? {
        state.withLock { state in
            // Mostly it is the last that is new.
            for depth in (0..<min(place.path.depth, state.depthCount)).reversed() {
                guard let children = state.newestChildren(above: place, at: depth) else { continue }
                if children.lack(ChildKey(place.component(depth))) { return depth + 1 }
            }
            return nil
        }
    }

    /// Notes the greatest child of the parent of a place, as it was read.
    func remember(_ greatest: [UInt8], inParentOf place: PlacedPath) {
        guard place.key.count <= Self.keyBytesMax else { return }
        let children = NewestChildren(behind: ChildKey(greatest[...]))
        state.withLock { $0.remember(children, above: place, at: place.path.depth - 1) }
    }

    /// Takes a planned change to heart: `isRemoval` when nothing is left at the place, `existsDepth` what is left above
    /// it.
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

    /// Two generations of parents: an old one that is written into becomes young, and when there are too many young
    /// ones, they grow old, and those that were still old are forgotten. (To know the order of all of them would cost
    /// each push more.)
    private struct State {
        let limits: Limits
        private var young = Generation()
        /// None of its parents is young, too: of two memories of one parent, the one that is not asked would grow
        /// wrong.
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

        /// If the parent is known.
        mutating func insertChild(above place: PlacedPath, at depth: Int) {
            if young.insertChild(above: place, at: depth, max: limits.children) { return }
            let key = ChildKey(place.component(depth))
            // What it cannot tell of does not keep it.
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

        /// Goes through all parents, but only after as many writes as half the children that may be known; and what
        /// several connections are just writing stays known.
        mutating func boundChildren() {
            guard young.childCount + old.childCount > limits.allChildren else { return }
            young.forgetOlderChildren()
            old.forgetOlderChildren()
        }
    }
}

/// Parents that are forgotten together: by a write at or above one of them, which may replace what is known of any, or
/// because none of them was written into for long.
private struct Generation {
    /// By the key of the parent's rows.
    private var children: [RowKey: NewestChildren] = [:]
    /// The keys of these parents and of everything above them. A parent that went leaves its key and those above it
    /// behind, which can but make the others be forgotten.
    private var above: Set<RowKey> = []
    /// How many parents there are at each depth.
    private var countAtDepth: [Int] = []
    /// How many children are known one by one.
    private(set) var childCount = 0

    var depthCount: Int { countAtDepth.count }

    /// Keys that parents left behind count, too.
    func isFull(_ parentsMax: Int) -> Bool { children.count >= parentsMax || above.count >= 4 * parentsMax }

    func newestChildren(above place: PlacedPath, at depth: Int) -> NewestChildren? {
        hasParents(at: depth) ? children[RowKey(place, depth)] : nil
    }

    /// Few writes are so high up that they need the look.
    func perhapsHasParents(atOrBelow place: PlacedPath) -> Bool {
        countAtDepth.count > place.path.depth && above.contains(RowKey(place, place.path.depth))
    }

    private func hasParents(at depth: Int) -> Bool { depth < countAtDepth.count && countAtDepth[depth] > 0 }

    /// A parent that is not known.
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
            // What is above a key came with it.
            if above.contains(key) { return }
            above.insert(key.kept)
        }
    }

    /// False when the parent is not known.
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

    /// At least half of those that are known one by one.
    mutating func forgetOlderChildren() {
        childCount = 0
        // In place: a copy of all parents would hold up the writer.
        var index = children.startIndex
        while index != children.endIndex {
            children.values[index].forgetOlderHalf()
            childCount += children.values[index].keys.count
            children.formIndex(after: &index)
        }
    }
}

/// The children of one parent that come behind a certain key, perhaps with some that are no longer there.
private struct NewestChildren {
    /// In rising order, as rows have them.
    private(set) var keys: [ChildKey] = []
    private(set) var floor: ChildKey

    /// - Parameter floor: a key with no child behind it.
    init(behind floor: ChildKey) { self.floor = floor }

    /// Whether there is surely no child with this key.
    func lack(_ key: ChildKey) -> Bool { lack(key, at: place(of: key)) }

    private func lack(_ key: ChildKey, at place: Int) -> Bool {
        place == 0 ? floor < key : keys[place - 1] != key
    }

    /// Returns how many more keys there are then.
    mutating func insert(_ key: ChildKey, max: Int) -> Int {
        let (place, count) = (place(of: key), keys.count)
        guard lack(key, at: place) else { return 0 }
        keys.insert(key, at: place)
        if keys.count > max { forgetOlderHalf() }
        return keys.count - count
    }

    /// All behind the greatest of them stay known; the last one goes, too, so that in the end a parent that is not
    /// written into keeps none.
    mutating func forgetOlderHalf() {
        guard !keys.isEmpty else { return }
        let half = (keys.count + 1) / 2
        floor = keys[half - 1]
        // A new array: the old one would keep its room.
        keys = Array(keys[half...])
    }

    /// How many keys are not behind this one; as a rule, nearly all.
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

/// The first 24 bytes of a child's key as rows have it, or all of a shorter one with zeros behind: a push key has 21.
/// They have the order of the keys. Long keys that begin alike are taken for one, which can but make a key seem taken.
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

/// The key of a row, or what it begins with; hashed as a whole, which an array of bytes is not.
private struct RowKey: Hashable {
    private let bytes: [UInt8]
    /// So many of them: to look an ancestor up, its key need not be copied out of that of the place.
    private let count: Int

    /// The key of the ancestor at a depth.
    init(_ place: PlacedPath, _ depth: Int) { self.init(place.key, count: place.ends[depth]) }

    private init(_ bytes: [UInt8], count: Int) {
        self.bytes = bytes
        self.count = count
    }

    /// The same without what comes behind, to be kept.
    var kept: RowKey { RowKey(Array(bytes[..<count]), count: count) }

    func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    static func == (left: RowKey, right: RowKey) -> Bool {
        left.bytes[..<left.count] == right.bytes[..<right.count]
    }
}
