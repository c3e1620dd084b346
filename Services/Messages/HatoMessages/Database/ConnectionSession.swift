import Synchronization

/// What this service remembers of one connection: which of its writes are not yet visible.
///
/// A read must see every earlier write of its own connection (protocol §1). Writes become visible in the order in which
/// they were submitted, so two counters are enough: a read notes how many writes were submitted before it and runs when
/// that many are done. When none is pending it runs at once.
final class ConnectionSession: Sendable {
    private struct Waiting {
        /// Runs when so many writes are done.
        var after: UInt64
        var run: @Sendable () -> Void
    }

    private struct State {
        var submitted: UInt64 = 0
        var done: UInt64 = 0
        /// In order of arrival, so also in order of `after`.
        var waiting: [Waiting] = []
    }

    private let state = Mutex(State())

    /// Called before a write is submitted.
    func writeBegan() { state.withLock { $0.submitted += 1 } }

    /// Called when a write is durable and its events are on their way, or when it was refused. In order of submission.
    func writeEnded() {
        let ready = state.withLock { state -> [Waiting] in
            state.done += 1
            guard let first = state.waiting.first, first.after <= state.done else { return [] }
            let count = state.waiting.firstIndex { $0.after > state.done } ?? state.waiting.count
            let ready = Array(state.waiting[..<count])
            state.waiting.removeFirst(count)
            return ready
        }
        for waiting in ready { waiting.run() }
    }

    /// Runs `body` when every write submitted so far is done: now, on this thread, if there is none.
    func afterOwnWrites(_ body: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state -> Bool in
            if state.done == state.submitted { return true }
            state.waiting.append(Waiting(after: state.submitted, run: body))
            return false
        }
        if isReady { body() }
    }
}
