import HatoModel
import HatoRules
import Synchronization

/// Remembers what rules learned of stored data, so that the next write into the same chat looks nothing up: who its
/// members are, whether it is there. (Looking things up, above all the beginning of a scan, was most of what rules cost.)
///
/// It stays right for the reason that `ParentMemory` does: what is remembered was read in the turn of a write, and every
/// write of the database is planned with it, in the order of application; what a plan changes is forgotten. A plan that is
/// then not applied can but make it forget.
///
/// What is remembered is bounded: when it is full it begins anew.
final class DataMemory: Sendable {
    /// Some 300 bytes each, as a rule.
    private static let placesMax = 16_384
    /// Of longer paths and texts nothing is remembered.
    private static let pathBytesMax = 1_024
    static let textBytesMax = 256

    /// What is known of one place; nil: nothing.
    struct Known: Sendable {
        let path: TreePath
        var leaf: TreeLeaf??
        var exists: Bool?
        var hasChildren: Bool?
        var priority: TreePriority??

        init(_ path: TreePath) { self.path = path }

        fileprivate var isEmpty: Bool { leaf == nil && exists == nil && hasChildren == nil && priority == nil }

        /// Forgets what a change may have made wrong.
        fileprivate mutating func forget(_ change: PathChange, depth: Int) {
            if RulesRead.Aspect.value.isTouched(at: depth, by: change) { leaf = nil }
            if RulesRead.Aspect.existence.isTouched(at: depth, by: change) { exists = nil }
            if RulesRead.Aspect.children.isTouched(at: depth, by: change) { hasChildren = nil }
            if RulesRead.Aspect.priority.isTouched(at: depth, by: change) { priority = nil }
        }
    }

    private struct State {
        var places = PathTrie<Known>()
        var count = 0
    }

    private let state = Mutex(State())

    /// What is too long to remember is asked for each time.
    private func isShort(_ path: TreePath) -> Bool {
        path.keys.reduce(0) { $0 + $1.text.utf8.count } <= Self.pathBytesMax
    }

    func known(at path: TreePath) -> Known? { state.withLock { $0.places.kept(at: path) } }

    /// Asks what is known, or finds it out and remembers it.
    func value<Value>(
        at path: TreePath, _ member: any WritableKeyPath<Known, Value?> & Sendable,
        keeping isKept: (Value) -> Bool = { _ in true }, _ find: () throws -> Value
    ) rethrows -> Value {
        if let known = known(at: path)?[keyPath: member] { return known }
        let found = try find()
        if isKept(found), isShort(path) { remember(path) { $0[keyPath: member] = found } }
        return found
    }

    private func remember(_ path: TreePath, _ set: (inout Known) -> Void) {
        state.withLock { state in
            if state.count >= Self.placesMax { state = State() }
            var isNew = false
            state.places.change(at: path) { kept in
                isNew = kept == nil
                var known = kept ?? Known(path)
                set(&known)
                kept = known
            }
            if isNew { state.count += 1 }
        }
    }

    func forget(_ changes: [PathChange]) {
        state.withLock { state in
            if state.count == 0 { return }
            for change in changes { Self.forget(change, &state) }
        }
    }

    private static func forget(_ change: PathChange, _ state: inout State) {
        var touched: [(path: TreePath, depth: Int)] = []
        let depth = change.path.depth
        state.places.visit(change.path.node) {
            touched.append(($1.path, $0))
        } atOrBelow: { isBelow, known in
            touched.append((known.path, isBelow ? depth + 1 : depth))
        }
        for (path, depth) in touched {
            state.places.change(at: path) { kept in
                kept?.forget(change, depth: depth)
                guard kept?.isEmpty == true else { return }
                kept = nil
                state.count -= 1
            }
        }
    }
}
