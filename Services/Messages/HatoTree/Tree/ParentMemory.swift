import HatoModel
import Synchronization

/// Remembers the parents that children were pushed to, so that the next push into the same parent reads nothing: a push
/// must know that no leaf stands above it and that its key is free, and both are true below a parent that has children
/// when none of them has that key. (A seek costs a push more than all the rest of planning and applying it.)
///
/// Of each parent it knows all children that come behind a certain key. Keys of pushes rise, but those of several
/// connections overtake each other on their way; the newest ones are kept one by one for that.
///
/// One database has one memory, or after it was replaced a new empty one. It stays right as long as every write of the
/// database is planned with it, in the order of application. A plan that is then not applied does no harm: only what
/// was read is remembered, and what is planned can but make it forget, or believe that one more key is taken.
///
/// What is remembered is bounded: when it is full it begins anew.
public final class ParentMemory: Sendable {
    /// Some 300 bytes each.
    public static let parentsMax = 32_768
    /// So many of a parent's newest children are known one by one.
    public static let childrenMax = 256
    /// Of all parents together; some 60 bytes each.
    private static let allChildrenMax = 131_072

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

    private struct State {
        /// By the key of the parent's rows.
        var children: [RowKey: NewestChildren] = [:]
        /// The keys of these parents and of everything above them.
        var above: Set<RowKey> = []
        /// How many parents there are at each depth.
        var countAtDepth: [Int] = []
        /// How many children are known one by one.
        var childCount = 0
    }

    private let parentsMax: Int
    private let childrenMax: Int
    private let state = Mutex(State())

    public init(parentsMax: Int = ParentMemory.parentsMax, childrenMax: Int = ParentMemory.childrenMax) {
        self.parentsMax = parentsMax
        self.childrenMax = childrenMax
    }

    func whether(isFree place: PlacedPath) -> Answer {
        guard place.path.depth > 0 else { return .unknown }
        return state.withLock { state in
            guard let index = state.children.index(forKey: RowKey(place.ancestor(place.path.depth - 1))) else {
                return .unknown
            }
            return state.children.values[index].lack(place.component(place.path.depth - 1)) ? .free : .perhapsTaken
        }
    }

    /// Whether it is known that nothing is at a place, because the node itself or one above it is not there.
    func surelyLacks(_ place: PlacedPath) -> Bool {
        state.withLock { state in
            for depth in 0..<min(place.path.depth, state.countAtDepth.count) where state.countAtDepth[depth] > 0 {
                guard let index = state.children.index(forKey: RowKey(place.ancestor(depth))) else { continue }
                if state.children.values[index].lack(place.component(depth)) { return true }
            }
            return false
        }
    }

    /// Notes the greatest child of the parent of a place, as it was read.
    func remember(_ greatest: [UInt8], inParentOf place: PlacedPath) {
        guard place.key.count <= Self.keyBytesMax else { return }
        let depth = place.path.depth - 1
        state.withLock { state in
            // A parent that went leaves its key and those above it behind.
            if state.children.count >= parentsMax || state.above.count >= 4 * parentsMax { state = State() }
            if state.countAtDepth.count <= depth {
                state.countAtDepth += Array(repeating: 0, count: depth + 1 - state.countAtDepth.count)
            }
            let children = NewestChildren(behind: greatest)
            if let old = state.children.updateValue(children, forKey: RowKey(place.ancestor(depth))) {
                state.childCount -= old.keys.count
            } else {
                state.countAtDepth[depth] += 1
            }
            for depth in 0...depth { state.above.insert(RowKey(place.ancestor(depth))) }
        }
    }

    /// Takes a planned change to heart: `isRemoval` when nothing is left at the place, `existsDepth` what is left above
    /// it.
    func noteWrite(at place: PlacedPath, isRemoval: Bool, existsDepth: Int) {
        state.withLock { state in
            if state.children.isEmpty { return }
            if state.countAtDepth.count > place.path.depth, state.above.contains(RowKey(place.key)) {
                state = State()
                return
            }
            for depth in 0..<min(place.path.depth, state.countAtDepth.count) where state.countAtDepth[depth] > 0 {
                guard let index = state.children.index(forKey: RowKey(place.ancestor(depth))) else { continue }
                let count = state.children.values[index].keys.count
                if existsDepth < depth {
                    state.children.remove(at: index)
                    state.countAtDepth[depth] -= 1
                    state.childCount -= count
                } else if !isRemoval {
                    state.children.values[index].insert(place.component(depth), max: childrenMax)
                    state.childCount += state.children.values[index].keys.count - count
                }
            }
            if state.childCount > Self.allChildrenMax { state = State() }
        }
    }
}

/// The children of one parent that come behind a certain key, perhaps with some that are no longer there.
private struct NewestChildren {
    /// In rising order, as rows have them.
    private(set) var keys: [[UInt8]] = []
    private var floor: [UInt8]

    /// - Parameter floor: a key with no child behind it.
    init(behind floor: [UInt8]) { self.floor = floor }

    /// Whether there is surely no child with this key.
    func lack(_ key: ArraySlice<UInt8>) -> Bool {
        let place = place(of: key)
        return place == 0 ? floor.lexicographicallyPrecedes(key) : !keys[place - 1].elementsEqual(key)
    }

    mutating func insert(_ key: ArraySlice<UInt8>, max: Int) {
        guard lack(key) else { return }
        keys.insert(Array(key), at: place(of: key))
        guard keys.count > max else { return }
        let half = keys.count / 2
        floor = keys[half - 1]
        keys.removeFirst(half)
    }

    /// How many keys are not behind this one; as a rule, nearly all.
    private func place(of key: ArraySlice<UInt8>) -> Int {
        var (low, high) = (0, keys.count)
        var middle = high - 1
        while low < high {
            if key.lexicographicallyPrecedes(keys[middle]) { high = middle } else { low = middle + 1 }
            middle = (low + high) / 2
        }
        return low
    }
}

/// The key of a row; hashed as a whole, which an array of bytes is not.
private struct RowKey: Hashable {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}
