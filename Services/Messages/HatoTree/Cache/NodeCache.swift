public import HatoModel
import Synchronization

/// Caches what writes have read of a tree, so that the next write to the same chat reads nothing: facts about nodes,
/// the newest children of parents, and ranges of keys without rows.
///
/// It is correct by one rule: only what a write has read in its `Turn` is cached, and the turn's commit invalidates
/// what the write changes. A write that is refused leaves what was read for it, which is still true. Planning before
/// the turn neither reads nor fills it.
///
/// One database has one cache; a new one starts empty. Every write of the database has a turn of it, in the order of
/// application. It is bounded (`Limits`) and keeps what is in use.
public final class NodeCache: Sendable {
    /// The limits of a cache.
    public struct Limits: Sendable {
        /// Nodes with something cached, and those above them; usually some 300 bytes each.
        public var nodesMax = 131_072
        /// The number of a parent's newest children that are held individually.
        public var childrenMax = 256
        /// The same for all parents together; some 50 bytes each.
        public var allChildrenMax = 131_072
        /// Ranges of keys without rows; some 300 bytes each.
        public var rangesMax = 1_024
        /// Reads past an empty range are slow from here on: several times the duration where nothing was removed.
        public var slowRead = Duration.microseconds(200)
        /// A write of more rows invalidates the empty ranges of whole nodes, so that its turn stays short.
        public var rowsMax = 4_096

        public init() {}
    }

    /// What is cached.
    struct State {
        var nodes: CachedNodes
        var ranges: EmptyRanges
        /// The number of the open turn, or of none.
        fileprivate(set) var turn: UInt64 = 0
    }

    private let state: Mutex<State>
    private let rowsMax: Int
    /// Nil: empty ranges are not cached.
    let uptime: (@Sendable () -> Duration)?

    /// An empty cache.
    ///
    /// - Parameter uptime: The time since some fixed moment, for detecting slow reads over empty ranges of keys; nil:
    ///   they are not cached. It affects what is cached, never what is planned.
    public init(limits: Limits = Limits(), uptime: (@Sendable () -> Duration)? = nil) {
        state = Mutex(State(nodes: CachedNodes(limits), ranges: EmptyRanges(limits)))
        rowsMax = limits.rowsMax
        self.uptime = uptime
    }

    /// Opens a turn and returns its number; the turn before it is over.
    func openTurn() -> UInt64 {
        state.withLock { state in
            state.turn += 1
            return state.turn
        }
    }

    /// - Precondition: The turn is open.
    func access<Result: Sendable>(in turn: UInt64, _ body: @Sendable (inout State) -> Result) -> Result {
        state.withLock { state in
            precondition(state.turn == turn, "the turn of this write is over")
            return body(&state)
        }
    }

    /// Ends a turn, and invalidates what its write changes.
    ///
    /// - Precondition: The turn is open.
    func commit(_ plan: WritePlan, codec: TreeKeyCodec, in turn: UInt64) {
        access(in: turn) { [rowsMax] state in
            state.turn += 1
            // A span copies no change.
            let changes = plan.changes.span
            for index in changes.indices { state.nodes.invalidate(changes[index]) }
            state.ranges.invalidate(plan, codec, rowsMax: rowsMax)
        }
    }
}
