import HatoModel
import HatoRPC
import Synchronization

/// How many changes of each writer wait in the rows of a database, and which writer has its turn.
///
/// The caller of a fan-out is the writer: a write can notify thousands of users who did nothing. So writers wait for
/// their own changes only and take turns; the recipients share what is sent then (`AttemptSlots`). When the rows are
/// too many, the writer with the most bytes loses its oldest.
///
/// Turns come in rounds, in which each writer has one, and in each the writer with the oldest change comes first. So
/// changes are handled in the order of commits as long as none has more of them than fits into its turn.
final class ChangeBacklog: Sendable {
    /// Where a change stands, and its commit.
    struct Place: Sendable, Hashable, Comparable {
        var position: ChangePosition
        var version: UInt64

        static func < (one: Self, other: Self) -> Bool { one.position < other.position }
    }

    private struct Turn: Comparable {
        var round: UInt64
        var oldest: ChangePosition

        static func < (one: Self, other: Self) -> Bool { (one.round, one.oldest) < (other.round, other.oldest) }
    }

    /// Rows of a writer that came or went.
    struct Share: Sendable, Hashable {
        var writer: UserDigest
        var rows = 0
        var bytes = 0
        /// The oldest that came.
        var first: Place?

        /// Counts a row.
        mutating func add(_ key: RecordKey, _ value: [UInt8]) {
            rows += 1
            bytes += key.bytes.count + value.count
        }

        /// As if its rows had gone.
        fileprivate var reversed: Share { Share(writer: writer, rows: -rows, bytes: -bytes) }
    }

    private struct State {
        var rows: [UserDigest: Int] = [:]
        var rowCount = 0
        /// The writer with the most bytes comes first.
        var bytes = IndexedHeap<UserDigest, Int>()
        var byteCount = 0
        /// Writers that have something to do, in the order of their turns.
        var ready = IndexedHeap<UserDigest, Turn>()
        var round: UInt64 = 0
        /// Those that had their turn in this round.
        var served: Set<UserDigest> = []
        /// A place of each writer before which none of its changes waits.
        var oldest = IndexedHeap<UserDigest, Place>()
        /// The first commit of which changes are being written down.
        var coming: UInt64?
        /// The commit of the store through which it is known what came.
        var knownThrough: UInt64 = 0
        /// Writers of which changes came during a turn of the handler, with the first of these; nil between turns.
        var cameMeanwhile: [UserDigest: Place]?
        var bell: AsyncStream<Void>.Continuation?

        /// In any order: rows may go before it is known that they came.
        mutating func add(_ share: Share) {
            let writer = share.writer
            let bytes = share.bytes - (self.bytes.priority(of: writer) ?? 0)
            let count = rows[writer, default: 0] + share.rows
            byteCount += share.bytes
            rowCount += share.rows
            rows[writer] = count != 0 ? count : nil
            guard count != 0 else {
                byteCount -= bytes
                self.bytes.remove(writer)
                oldest.remove(writer)
                return ready.remove(writer)
            }
            self.bytes.insert(writer, -bytes)
            if let first = share.first, !oldest.contains(writer) { oldest.insert(writer, first) }
        }

        @discardableResult
        mutating func isReady(_ writer: UserDigest) -> Bool {
            guard rows[writer, default: 0] > 0 else { return false }
            guard !ready.contains(writer) else { return true }
            // New writers cannot keep the others from the next round.
            let isServed = served.contains(writer) || served.count >= Self.servedMax
            let none = ChangePosition(sequence: .max, index: .max)
            ready.insert(
                writer,
                Turn(round: isServed ? round + 1 : round, oldest: oldest.priority(of: writer)?.position ?? none))
            return true
        }

        mutating func endTurn() {
            for writer in (cameMeanwhile ?? [:]).keys { isReady(writer) }
            cameMeanwhile = nil
        }

        mutating func begin(_ round: UInt64) {
            self.round = round
            served = []
        }

        private static let servedMax = 1_024
    }

    private let state = Mutex(State())
    private let report: @Sendable (_ rows: Int) -> Void

    /// - Parameter report: gets how many changes wait, whenever some came or went.
    init(report: @escaping @Sendable (_ rows: Int) -> Void = { _ in }) { self.report = report }

    deinit { report(0) }

    var isEmpty: Bool { state.withLock { $0.rows.isEmpty } }
    func hasChanges(of writer: UserDigest) -> Bool { state.withLock { $0.rows[writer] != nil } }
    var rowCount: Int { state.withLock { $0.rowCount } }
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// Changes of this commit and of later ones are being written down.
    func comes(_ version: UInt64) { state.withLock { $0.coming = version } }

    /// Changes came, and wait behind those of their writers; with them, all are known through a commit of the store.
    func came(_ shares: [Share], through sequence: UInt64) {
        state.withLock { state in
            state.coming = nil
            state.knownThrough = max(state.knownThrough, sequence)
            for share in shares {
                state.add(share)
                if state.cameMeanwhile == nil {
                    state.isReady(share.writer)
                } else if state.cameMeanwhile?[share.writer] == nil {
                    state.cameMeanwhile?[share.writer] = share.first
                }
            }
            report(state.rowCount)
        }
        ring()
    }

    /// Rows went.
    ///
    /// - Parameter finished: writers of which no change is left that came before the turn.
    func went(_ shares: [Share], finished: [UserDigest] = []) {
        state.withLock { state in
            for share in shares { state.add(share.reversed) }
            for writer in finished {
                guard state.oldest.contains(writer), let place = state.cameMeanwhile?[writer] else { continue }
                state.oldest.insert(writer, place)
            }
            report(state.rowCount)
        }
    }

    // MARK: Turns

    /// Begins a turn of the handler, for changes through the returned commit of the store: those that come meanwhile
    /// could be loaded of one writer, and not of another who wrote earlier.
    func beginTurn() -> UInt64 {
        state.withLock { state in
            state.endTurn()
            state.cameMeanwhile = [:]
            return state.knownThrough
        }
    }

    /// False: there is nothing to do.
    func endTurn() -> Bool {
        state.withLock { state in
            state.endTurn()
            return !state.ready.isEmpty
        }
    }

    /// The writer whose turn it is; it has no other one until it is ready again, and that is in the next round.
    func next() -> UserDigest? {
        state.withLock { state in
            guard let (writer, turn) = state.ready.first else {
                state.begin(state.round + 1)
                return nil
            }
            state.ready.remove(writer)
            if turn.round > state.round { state.begin(turn.round) }
            state.served.insert(writer)
            return writer
        }
    }

    /// A writer waits for what its changes need: it has another turn in this round.
    func keepsTurn(_ writer: UserDigest) {
        state.withLock { state in
            state.served.remove(writer)
        }
    }

    /// A writer has something to do. False: none of its changes waits.
    @discardableResult
    func isReady(_ writer: UserDigest) -> Bool { state.withLock { $0.isReady(writer) } }

    /// All writers have something to do.
    func allAreReady() {
        state.withLock { state in
            for writer in state.rows.keys.sorted(by: { $0.value < $1.value }) { state.isReady(writer) }
        }
    }

    /// Rings when changes have come or `ring` was called, once for any number of times. The one before ends.
    func rings() -> AsyncStream<Void> {
        let (rings, bell) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let former = state.withLock { state in
            defer { state.bell = bell }
            return state.bell
        }
        former?.finish()
        return rings
    }

    func ring() { _ = state.withLock { $0.bell }?.yield() }

    // MARK: Excess

    /// The writers with the most bytes, the most first, and how many each of them loses so that `bytes` more fit into
    /// `bytesMax`.
    func excess(adding bytes: Int, bytesMax: Int) -> [(writer: UserDigest, bytes: Int)] {
        state.withLock { state in
            var excess = state.byteCount + bytes - bytesMax
            var shares: [(writer: UserDigest, bytes: Int)] = []
            var passed: [(key: UserDigest, priority: Int)] = []
            while excess > 0, let first = state.bytes.first {
                state.bytes.remove(first.key)
                passed.append(first)
                // About down to the next one: who has few bytes loses none.
                let (most, next) = (-first.priority, -(state.bytes.first?.priority ?? 0))
                let share = min(excess, max(1, most / 8, most - next))
                shares.append((first.key, share))
                excess -= share
            }
            for entry in passed { state.bytes.insert(entry.key, entry.priority) }
            return shares
        }
    }

    // MARK: Position

    /// No change of a writer waits before this one.
    func begins(_ writer: UserDigest, at place: Place) {
        state.withLock { state in
            if state.oldest.contains(writer) { state.oldest.insert(writer, place) }
        }
    }

    /// The oldest commit that has a change which waits, or one before it.
    var oldestVersion: UInt64? {
        state.withLock { state in [state.coming, state.oldest.first?.priority.version].compactMap(\.self).min() }
    }

    /// The oldest change that waits, or a place before it, but for those of some writers.
    func oldest(besides writers: some Sequence<UserDigest>) -> ChangePosition? {
        state.withLock { state in
            var passed: [(UserDigest, Place)] = []
            for writer in writers {
                guard let place = state.oldest.priority(of: writer) else { continue }
                state.oldest.remove(writer)
                passed.append((writer, place))
            }
            defer { for (writer, place) in passed { state.oldest.insert(writer, place) } }
            return state.oldest.first?.priority.position
        }
    }
}
