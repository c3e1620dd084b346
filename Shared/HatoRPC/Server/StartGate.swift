import Synchronization

/// What starts only while there is memory for it, and waits otherwise: the requests that read, or the lines whose
/// values take many times their bytes. Part of `ProcessBudget`.
struct StartGate: ~Copyable, Sendable {
    /// What waits to start, and what calls it.
    struct State {
        var queue = StartQueue()
        var resumes: [UInt64: @Sendable () -> Void] = [:]
    }

    /// It starts while all hold no more than this.
    let limit: Int
    let state = Mutex(State())
    let waitingCount = Atomic(0)
    /// Whether the one runs that may although all hold more.
    let isExempt = Atomic(false)

    init(limit: Int) { self.limit = limit }

    /// Changes what waits.
    func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            waitingCount.store(state.queue.waitingCount, ordering: .sequentiallyConsistent)
            return result
        }
    }

    var isEmpty: Bool { waitingCount.load(ordering: .sequentiallyConsistent) == 0 }
}
