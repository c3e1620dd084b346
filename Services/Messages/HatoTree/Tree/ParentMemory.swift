import HatoModel
import Synchronization

/// Remembers the parents that children were pushed to, so that the next push into the same parent reads nothing: a push
/// must know that no leaf stands above it and that its key is free, and both are true below a parent that has children
/// when the key is greater than that of all of them. (A seek costs a push more than all the rest of planning and
/// applying it.)
///
/// One database has one memory, or after it was replaced a new empty one. It stays right as long as every write of the
/// database is planned with it, in the order of application. A plan that is then not applied does no harm: only what
/// was read is remembered, and what is planned can but make it forget, or believe a greater key is taken.
///
/// What is remembered is bounded: when it is full it begins anew.
public final class ParentMemory: Sendable {
    /// Some 300 bytes each.
    public static let parentsMax = 32_768

    private struct State {
        /// The key of a parent's rows → the greatest of its children's keys, as rows have it.
        var greatest: [[UInt8]: [UInt8]] = [:]
        /// The keys of these parents and of everything above them.
        var above: Set<[UInt8]> = []
        /// How many parents there are at each depth.
        var countAtDepth: [Int] = []
    }

    private let parentsMax: Int
    private let state = Mutex(State())

    public init(parentsMax: Int = ParentMemory.parentsMax) { self.parentsMax = parentsMax }

    /// Whether the parent of a place surely has children, all of them before that place.
    func isBehindAllChildren(_ place: PlacedPath) -> Bool {
        guard place.path.depth > 0 else { return false }
        return state.withLock { state in
            guard let greatest = state.greatest[place.ancestor(place.path.depth - 1)] else { return false }
            return greatest.lexicographicallyPrecedes(place.component(place.path.depth - 1))
        }
    }

    /// Notes the greatest child of the parent of a place, as it was read.
    func remember(_ greatest: [UInt8], inParentOf place: PlacedPath) {
        let depth = place.path.depth - 1
        state.withLock { state in
            if state.greatest.count >= parentsMax { state = State() }
            if state.countAtDepth.count <= depth {
                state.countAtDepth += Array(repeating: 0, count: depth + 1 - state.countAtDepth.count)
            }
            if state.greatest.updateValue(greatest, forKey: place.ancestor(depth)) == nil {
                state.countAtDepth[depth] += 1
            }
            for depth in 0...depth { state.above.insert(place.ancestor(depth)) }
        }
    }

    /// Takes a planned change to heart: `isRemoval` when nothing is left at the place, `existsDepth` what is left above
    /// it.
    func noteWrite(at place: PlacedPath, isRemoval: Bool, existsDepth: Int) {
        state.withLock { state in
            if state.greatest.isEmpty { return }
            if state.countAtDepth.count > place.path.depth, state.above.contains(place.key) {
                state = State()
                return
            }
            for depth in 0..<min(place.path.depth, state.countAtDepth.count) where state.countAtDepth[depth] > 0 {
                guard let index = state.greatest.index(forKey: place.ancestor(depth)) else { continue }
                if existsDepth < depth {
                    state.greatest.remove(at: index)
                    state.countAtDepth[depth] -= 1
                } else if !isRemoval, state.greatest.values[index].lexicographicallyPrecedes(place.component(depth)) {
                    state.greatest.values[index] = Array(place.component(depth))
                }
            }
        }
    }
}
