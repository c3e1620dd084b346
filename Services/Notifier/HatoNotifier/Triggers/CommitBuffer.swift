import Synchronization

/// Commits that came and were not handled yet: what gathers while one transaction is written goes into the next. One
/// task appends, another takes; when it is full, by changes or by bytes, the appending one waits, and with it the feed.
final class CommitBuffer: Sendable {
    private struct State {
        var commits: [FeedCommit] = []
        var changeCount = 0
        var byteCount = 0
        var end: Result<Void, any Error>?
    }

    private let state = Mutex(State())
    private let changesMax: Int
    private let bytesMax: Int
    private let filled: AsyncStream<Void>
    private let fill: AsyncStream<Void>.Continuation
    private let drained: AsyncStream<Void>
    private let drain: AsyncStream<Void>.Continuation

    init(_ limits: NotifierLimits) {
        changesMax = limits.changesPerBatchMax
        bytesMax = limits.waitingChangeBytesMax
        (filled, fill) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (drained, drain) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Returns when there is room again, or when the task is cancelled.
    func append(_ commit: FeedCommit) async {
        state.withLock { state in
            state.commits.append(commit)
            state.changeCount += commit.changes.count
            state.byteCount += commit.byteCount
        }
        fill.yield()
        var rings = drained.makeAsyncIterator()
        while state.withLock({ $0.changeCount >= changesMax || $0.byteCount >= bytesMax }) {
            guard await rings.next() != nil else { return }
        }
    }

    func end(_ result: Result<Void, any Error>) {
        state.withLock { $0.end = result }
        fill.yield()
    }

    /// Everything that waits, at least one commit; nil after the end or when cancelled. Throws what ended it.
    func takeAll() async throws -> [FeedCommit]? {
        var rings = filled.makeAsyncIterator()
        while true {
            let (commits, end) = state.withLock { state in
                defer {
                    state.commits = []
                    (state.changeCount, state.byteCount) = (0, 0)
                }
                return (state.commits, state.end)
            }
            if !commits.isEmpty {
                drain.yield()
                return commits
            }
            if let end {
                try end.get()
                return nil
            }
            guard await rings.next() != nil else { return nil }
        }
    }
}
