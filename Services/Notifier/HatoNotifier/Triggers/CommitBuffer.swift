import Synchronization

/// A commit with what it holds of the budget.
struct BufferedCommit: Sendable {
    var commit: FeedCommit
    var reservation: ByteBudget.Reservation?
    /// What it takes in memory.
    let bytes: Int

    init(_ commit: FeedCommit) {
        self.commit = commit
        bytes = commit.memoryBytes
    }

    /// How many changes it counts as.
    var changeCount: Int { max(1, commit.changes.count) }
}

/// Commits that came and were not written down yet. One task appends, another takes and says what is done; when too
/// much is under way, by changes or by bytes, the appending one waits, and with it the feed.
final class CommitBuffer: Sendable {
    private struct State {
        var commits: [BufferedCommit] = []
        // Of commits that were appended and are not done.
        var changeCount = 0
        var byteCount = 0
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
        var held = BufferedCommit(commit)
        held.reservation = try await budget.reserve(held.bytes)
        state.withLock { [held] state in
            state.commits.append(held)
            state.changeCount += held.changeCount
            state.byteCount += min(held.bytes, bytesMax)
        }
        fill.yield()
        var rings = drained.makeAsyncIterator()
        while state.withLock({ $0.changeCount >= changesMax || $0.byteCount >= bytesMax }) {
            guard await rings.next() != nil else { throw CancellationError() }
        }
    }

    /// Commits that were taken are done.
    func finished(_ commits: [BufferedCommit]) {
        state.withLock { state in
            for commit in commits {
                state.changeCount -= commit.changeCount
                state.byteCount -= min(commit.bytes, bytesMax)
            }
        }
        drain.yield()
    }

    func end(_ result: Result<Void, any Error>) {
        state.withLock { $0.end = result }
        fill.yield()
    }

    /// Everything that came, at least one commit; nil after the end or when cancelled. Throws what ended it.
    func takeAll() async throws -> [BufferedCommit]? {
        var rings = filled.makeAsyncIterator()
        while true {
            let (commits, end) = state.withLock { state in
                defer { state.commits = [] }
                return (state.commits, state.end)
            }
            if !commits.isEmpty { return commits }
            if let end {
                try end.get()
                return nil
            }
            guard await rings.next() != nil else { return nil }
        }
    }
}
