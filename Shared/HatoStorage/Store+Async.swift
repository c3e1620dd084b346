extension Store {
    /// Runs `body` as one transaction; returns when its commit is durable.
    ///
    /// Cancelling the task does not cancel the write: it is in the queue already.
    ///
    /// - Throws: the error that `body` threw, or `StoreError`.
    public func write<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome
    ) async throws -> Committed<Outcome> {
        try await withCheckedThrowingContinuation { continuation in
            submit(body) { continuation.resume(with: $0) }
        }
    }

    /// The state at this place among the writes of the service itself.
    public func submitSnapshot(
        endsGroup: Bool, _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) {
        submitSnapshot(of: nil, endsGroup: endsGroup, completion)
    }

    /// Runs `body` on a reader thread, as work of the service itself.
    public func submitRead(_ body: @escaping @Sendable () -> Void) { submitRead(of: nil, body) }

    /// Runs `body` on a reader thread against the newest durable state.
    ///
    /// - Throws: the error that `body` threw, or `StoreError`.
    public func read<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreSnapshot) throws -> Outcome
    ) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            submitRead {
                continuation.resume(with: Result { try body(self.snapshot()) })
            }
        }
    }

    /// Observes commits without being notified of the end of the store.
    @discardableResult
    public func observeCommits(_ observer: @escaping @Sendable (CommitGroup) -> Void) -> CommitObservation {
        observeCommits(observer, ended: { _ in })
    }

    /// Waits until the store has closed or failed and returns the error; returns `.closed` at once when the task is
    /// cancelled.
    public func ended() async -> StoreError {
        let (errors, continuation) = AsyncStream.makeStream(of: StoreError.self)
        let observation = observeCommits({ _ in }, ended: { continuation.yield($0) })
        defer { observation.cancel() }
        for await error in errors { return error }
        return .closed(cause: nil)
    }

    /// Every commit after `version`, in order: first those that are kept, then each new one as it becomes durable.
    ///
    /// The sequence holds at most one result of `commits` in memory, however far its reader is behind. It throws
    /// `.compacted` or `.unknownVersion` as `commits` does (also when it fell so far behind that records were removed),
    /// and `.closed` when the store ends; it ends without an error when its task is cancelled.
    public func follow(after version: UInt64) -> CommitSequence {
        CommitSequence(store: self, version: version)
    }
}
