import Synchronization

/// The commits of a store after a version, replayed and then followed.
public struct CommitSequence: AsyncSequence, Sendable {
    let store: any Store
    let version: UInt64

    public func makeAsyncIterator() -> Iterator { Iterator(store: store, position: version) }

    /// Reads the commits one after the other.
    public struct Iterator: AsyncIteratorProtocol {
        private let store: any Store
        private let alarm: CommitWaiter
        private var position: UInt64
        private var waiting: ArraySlice<Commit> = []

        init(store: any Store, position: UInt64) {
            self.store = store
            self.position = position
            self.alarm = CommitWaiter(store: store)
        }

        /// The next commit; nil when the sequence has ended. Throws `StoreError`, `compacted` among them.
        public mutating func next() async throws -> Commit? {
            while true {
                if Task.isCancelled { return nil }
                if let commit = waiting.popFirst() {
                    position = commit.version
                    return commit
                }
                let (store, position) = (store, position)
                let replayed: [Commit] = try await withCheckedThrowingContinuation { continuation in
                    store.submitRead {
                        continuation.resume(with: Result { try store.commits(after: position, limit: 256) })
                    }
                }
                waiting = replayed[...]
                if replayed.isEmpty { try await alarm.wait(after: position) }
            }
        }
    }
}

/// Wakes one task when a store has commits after the version it knows.
///
/// It observes commits from before the first replay, so no commit is lost between a replay that found nothing and the
/// wait: `newest` has the commits in between.
private final class CommitWaiter: Sendable {
    private struct State {
        var newest: UInt64 = 0
        var ended: StoreError?
        var isCancelled = false
        var sleeper: (position: UInt64, continuation: CheckedContinuation<Void, Never>)?

        var isDue: Bool { isCancelled || ended != nil || newest > (sleeper?.position ?? .max) }
    }

    /// The part that the store's observer retains, so that an abandoned iterator ends its observation.
    private final class Signal: Sendable {
        let state = Mutex(State())

        func change(_ body: (inout sending State) -> Void) {
            let sleeper = state.withLock { state in
                body(&state)
                return state.isDue ? state.sleeper.take() : nil
            }
            sleeper?.continuation.resume()
        }
    }

    private let signal: Signal
    private let observation: CommitObservation

    init(store: any Store) {
        let signal = Signal()
        self.signal = signal
        observation = store.observeCommits(
            { group in signal.change { $0.newest = group.commits.last?.version ?? $0.newest } },
            ended: { error in signal.change { $0.ended = error } })
    }

    deinit { observation.cancel() }

    /// Returns when there may be commits after `position`, or the task is cancelled; throws when the store has ended.
    func wait(after position: UInt64) async throws {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                signal.change { $0.sleeper = (position, continuation) }
            }
        } onCancel: {
            signal.change { $0.isCancelled = true }
        }
        if let error = signal.state.withLock({ $0.newest > position ? nil : $0.ended }) { throw error }
    }
}
