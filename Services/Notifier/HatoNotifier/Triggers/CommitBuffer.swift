import Synchronization

/// A commit with what it holds of the budget.
struct BufferedCommit: Sendable {
    var commit: FeedCommit
    var reservation: ByteBudget.Reservation?

    /// What it takes in memory.
    var bytes: Int {
        let bytes = commit.byteCount.multipliedReportingOverflow(by: TriggerBudget.bytesPerLineByte)
        return bytes.overflow ? .max : bytes.partialValue
    }

    /// How many changes it counts as.
    var slotCount: Int { max(1, commit.changes.count) }
}

/// Commits that came and were not written down yet. One task appends, another takes and says what is done; when too
/// much is under way, by changes or by bytes, the appending one waits, and with it the feed.
final class CommitBuffer: Sendable {
    private struct State {
        var commits: [BufferedCommit] = []
        /// Of commits that were appended and are not done.
        var held: [(slotCount: Int, bytes: Int)] = []
        var slotCount = 0
        var byteCount = 0
        /// Slots that are done of the first one held.
        var doneOfFirst = 0
        var end: Result<Void, any Error>?
    }

    private let state = Mutex(State())
    private let changesMax: Int
    private let bytesMax: Int
    private let budget: ByteBudget
    private let filled: AsyncStream<Void>
    private let fill: AsyncStream<Void>.Continuation
    private let drained: AsyncStream<Void>
    private let drain: AsyncStream<Void>.Continuation

    init(_ limits: NotifierLimits, _ budget: TriggerBudget) {
        changesMax = limits.changesPerBatchMax
        bytesMax = budget.changesPerFeed
        self.budget = budget.changes
        (filled, fill) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (drained, drain) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Returns when the next one may come. Throws when the task is cancelled.
    func append(_ commit: FeedCommit) async throws {
        var held = BufferedCommit(commit: commit)
        held.reservation = try await budget.reserve(held.bytes)
        state.withLock { [held] state in
            state.commits.append(held)
            state.held.append((held.slotCount, held.bytes))
            state.slotCount += held.slotCount
            state.byteCount += min(held.bytes, bytesMax)
        }
        fill.yield()
        var rings = drained.makeAsyncIterator()
        while state.withLock({ $0.slotCount >= changesMax || $0.byteCount >= bytesMax }) {
            guard await rings.next() != nil else { throw CancellationError() }
        }
    }

    /// So many places of a window, of the commits that were appended first, are done.
    func finished(_ count: Int) {
        state.withLock { state in
            state.doneOfFirst += count
            var ended = 0
            while ended < state.held.count, state.doneOfFirst >= state.held[ended].slotCount {
                state.doneOfFirst -= state.held[ended].slotCount
                state.slotCount -= state.held[ended].slotCount
                state.byteCount -= min(state.held[ended].bytes, bytesMax)
                ended += 1
            }
            state.held.removeFirst(ended)
        }
        drain.yield()
    }

    func end(_ result: Result<Void, any Error>) {
        state.withLock { $0.end = result }
        fill.yield()
    }

    /// What came, and may be nothing.
    func takeNow() -> [BufferedCommit] {
        state.withLock { state in
            defer { state.commits = [] }
            return state.commits
        }
    }

    /// Everything that came, at least one commit; nil after the end or when cancelled. Throws what ended it.
    func takeAll() async throws -> [BufferedCommit]? {
        var rings = filled.makeAsyncIterator()
        while true {
            let end = state.withLock { $0.end }
            let commits = takeNow()
            if !commits.isEmpty { return commits }
            if let end {
                try end.get()
                return nil
            }
            guard await rings.next() != nil else { return nil }
        }
    }
}
