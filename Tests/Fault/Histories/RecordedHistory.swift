import HatoModel
import Synchronization

/// A request of a client and its outcome.
struct RecordedOperation: Sendable {
    enum Request: Sendable {
        /// Reads a node.
        case read(TreePath)
        /// Writes all of these, or none. `expecting`: only if the node at the (single) path has that value.
        case write([(path: TreePath, value: JSONValue)], expecting: JSONValue? = nil)
        /// Appends a child below a path.
        case push(TreePath, JSONValue)
    }

    enum Outcome: Sendable {
        case read(JSONValue, version: UInt64)
        case written(version: UInt64, key: String? = nil)
        /// `ifMatch` was refused; the node had that value.
        case mismatch(JSONValue)
        /// The connection ended first: done or not.
        case unknown
    }

    /// Unique in the history; every value that the operation writes contains it.
    var id: Int
    var request: Request
    var invoked: ContinuousClock.Instant
    var answered: ContinuousClock.Instant
    var outcome: Outcome
}

/// A commit as a follower gets it: the new value of every path.
struct SeenCommit: Sendable, Equatable {
    var version: UInt64
    var changes: [TreePath: JSONValue]
}

/// The state of a listener at a version.
struct SeenState: Sendable {
    var version: UInt64
    var node: TreeNode
}

/// All requests, responses and events of one test, over all runs of the service.
final class RecordedHistory: Sendable {
    private struct State {
        var lastID = 0
        var operations: [RecordedOperation] = []
        var commits: [SeenCommit] = []
        var states: [SeenState] = []
    }

    private let state = Mutex(State())

    func nextID() -> Int {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    func add(_ operation: RecordedOperation) { state.withLock { $0.operations.append(operation) } }
    func add(_ commit: SeenCommit) { state.withLock { $0.commits.append(commit) } }
    func add(_ seen: SeenState) { state.withLock { $0.states.append(seen) } }

    var operations: [RecordedOperation] { state.withLock { $0.operations } }
    /// In the order in which a follower got them.
    var commits: [SeenCommit] { state.withLock { $0.commits } }
    var states: [SeenState] { state.withLock { $0.states } }
}
