import Synchronization

/// Settles one planned group at a time, while the writer's thread plans the next.
///
/// `@unchecked Sendable`: `state` is guarded by `condition`.
final class SyncThread: @unchecked Sendable {
    private enum State {
        case idle
        /// Nil when the thread has taken it.
        case busy(PlannedGroup?)
        /// The error, and the group that was not made durable.
        case failed(StoreError, PlannedGroup)
        case closed
    }

    private let condition = ThreadCondition()
    private let hasEnded = Latch()
    private var state = State.idle
    /// Mirrors `state`, so that each write can check it without the lock.
    private let hasGroup = Atomic<Bool>(false)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - starting: starts a thread.
    ///   - settle: settles a group.
    ///   - settled: called on the thread after each group, with the error when it failed; then no more are taken.
    func start(
        by starting: (@escaping @Sendable () -> Void) throws(StoreError) -> Void,
        _ settle: @escaping @Sendable (inout PlannedGroup) throws(StoreError) -> Void,
        settled: @escaping @Sendable (StoreError?) -> Void
    ) throws(StoreError) {
        try starting { [self] in
            defer { hasEnded.open() }
            while var group = takeGroup() {
                do throws(StoreError) {
                    try settle(&group)
                    // The objects it retains are released before the thread is seen as idle.
                    group = PlannedGroup(after: group.version, nil)
                    end(.idle)
                    settled(nil)
                } catch {
                    settled(error)
                    return end(.failed(error, group))
                }
            }
        }
    }

    private func takeGroup() -> PlannedGroup? {
        condition.withLock {
            while true {
                switch state {
                case .busy(let group?):
                    state = .busy(nil)
                    return group
                case .closed: return nil
                case .idle, .busy(nil), .failed: condition.wait()
                }
            }
        }
    }

    private func end(_ next: State) {
        condition.withLock {
            state = next
            hasGroup.store(false, ordering: .releasing)
            condition.signal()
        }
    }

    // MARK: On the writer's thread

    var isIdle: Bool { !hasGroup.load(ordering: .acquiring) }

    /// Only while idle.
    func take(_ group: PlannedGroup) {
        condition.withLock {
            state = .busy(group)
            hasGroup.store(true, ordering: .relaxed)
            condition.signal()
        }
    }

    /// After `close`, when the thread was started: returns when it does nothing any more.
    func waitUntilEnded() { hasEnded.wait() }

    /// Throws why the last group was not made durable.
    func waitUntilIdle() throws(StoreError) {
        let failure: StoreError? = condition.withLock {
            while case .busy = state { condition.wait() }
            guard case .failed(let error, _) = state else { return nil }
            return error
        }
        if let failure { throw failure }
    }

    /// Ends the thread once it is idle; returns the group that was not made durable.
    func close() -> PlannedGroup? {
        try? waitUntilIdle()
        return condition.withLock {
            defer {
                state = .closed
                condition.signal()
            }
            guard case .failed(_, let group) = state else { return nil }
            return group
        }
    }
}
