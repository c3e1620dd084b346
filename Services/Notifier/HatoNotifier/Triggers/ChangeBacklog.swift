import HatoModel
import HatoRPC
import Synchronization

/// How many changes of each writer wait in the rows of a database, and which writer has its turn.
///
/// The caller of a fan-out is the writer: a write can notify thousands of users who did nothing. So writers wait for
/// their own changes only and take turns; the recipients share what is sent then (`AttemptSlots`). When the rows are
/// too many, the writer with the most bytes loses its oldest.
final class ChangeBacklog: Sendable {
    /// Rows of a writer that came or went.
    struct Share: Sendable, Hashable {
        var writer: UserDigest
        var rows = 0
        var bytes = 0
        /// The commit of the oldest that came.
        var version: UInt64?

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
        /// The writer with the most bytes comes first.
        var bytes = IndexedHeap<UserDigest, Int>()
        var byteCount = 0
        /// Writers that have something to do, in the order of their turns.
        var ready = IndexedHeap<UserDigest, UInt64>()
        var lastTurn: UInt64 = 0
        /// A commit of each writer before which none of its changes waits.
        var oldest = IndexedHeap<UserDigest, UInt64>()
        /// The first commit of which changes are being written down.
        var coming: UInt64?
        var bell: AsyncStream<Void>.Continuation?

        /// In any order: rows may go before it is known that they came.
        mutating func add(_ share: Share) {
            let writer = share.writer
            let bytes = share.bytes - (self.bytes.priority(of: writer) ?? 0)
            let count = rows[writer, default: 0] + share.rows
            byteCount += share.bytes
            rows[writer] = count != 0 ? count : nil
            guard count != 0 else {
                byteCount -= bytes
                self.bytes.remove(writer)
                oldest.remove(writer)
                return ready.remove(writer)
            }
            self.bytes.insert(writer, -bytes)
            if let version = share.version, !oldest.contains(writer) { oldest.insert(writer, version) }
        }

        @discardableResult
        mutating func isReady(_ writer: UserDigest) -> Bool {
            guard rows[writer, default: 0] > 0 else { return false }
            guard !ready.contains(writer) else { return true }
            lastTurn += 1
            ready.insert(writer, lastTurn)
            return true
        }
    }

    private let state = Mutex(State())

    var rowCount: Int { state.withLock { $0.rows.values.reduce(0, +) } }
    var byteCount: Int { state.withLock { $0.byteCount } }

    /// Changes of this commit and of later ones are being written down.
    func comes(_ version: UInt64) { state.withLock { $0.coming = version } }

    /// Changes came, and wait behind those of their writers.
    func came(_ shares: [Share]) {
        state.withLock { state in
            state.coming = nil
            for share in shares {
                state.add(share)
                state.isReady(share.writer)
            }
        }
        ring()
    }

    func went(_ shares: [Share]) {
        state.withLock { state in
            for share in shares { state.add(share.reversed) }
        }
    }

    // MARK: Turns

    /// The writer whose turn it is; it has no other one until it is ready again.
    func next() -> UserDigest? {
        state.withLock { state in
            let writer = state.ready.first?.key
            if let writer { state.ready.remove(writer) }
            return writer
        }
    }

    /// A writer has something to do, after all that have now. False: none of its changes waits.
    @discardableResult
    func isReady(_ writer: UserDigest) -> Bool { state.withLock { $0.isReady(writer) } }

    /// All writers have something to do.
    func allAreReady() {
        state.withLock { state in
            for writer in state.rows.keys.sorted(by: { $0.value < $1.value }) { state.isReady(writer) }
        }
    }

    var isIdle: Bool { state.withLock { $0.ready.isEmpty } }

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

    /// No change of a writer waits before this commit.
    func begins(_ writer: UserDigest, at version: UInt64) {
        state.withLock { state in
            if state.oldest.contains(writer) { state.oldest.insert(writer, version) }
        }
    }

    /// The oldest commit that has a change which waits, or one before it.
    var oldestVersion: UInt64? {
        state.withLock { state in [state.coming, state.oldest.first?.priority].compactMap(\.self).min() }
    }
}
