import Synchronization

/// The one writer of a store: runs submitted closures in order, makes those that wait together durable with one sync,
/// then publishes, then tells observers, then answers.
///
/// **Order.** There is one queue and one thread, so closures run in the order they were submitted, each on what its
/// predecessors applied. Observers and completions run on the same thread, group after group, in the same order.
///
/// **Durable, then visible, then answered.** What a closure applies is seen by the closures after it only.
/// `makeDurable` comes next, then the snapshot is published, then observers and completions run: nobody outside the
/// writer's thread can learn of a commit that a crash could take back. That holds for closures that wrote nothing, or
/// threw, too: what they answer may rest on what an earlier one of the group wrote.
///
/// **Snapshots inside a group.** Transactions are applied one after the other, so the state between two of them can be
/// kept when somebody asks for it; it is handed over after the sync like everything else.
///
/// **Failure.** When applying or syncing fails, the group and everything behind it is refused, the store is closed and
/// the thread ends. Nothing is tried again: after a failed sync the operating system may have dropped the pages and
/// report success the next time.
package final class GroupCommit<Backend: CommitBackend>: Sendable {
    private enum Status {
        case open(any StoreSnapshot)
        case ended(StoreError, version: UInt64)
    }

    private let backend: Backend
    private let limits: StoreLimits
    private let queue = JobQueue<Submission>()
    private let observers = CommitObservers()
    /// Guarded by its mutex; changed by the writer's thread only.
    private let status: Mutex<Status>
    /// Why the store must end although no commit has failed yet.
    private let verdict = Mutex<StoreError?>(nil)
    private let groups = Atomic<UInt64>(0)
    private let hasEnded = Latch()

    package init(_ backend: Backend, at snapshot: any StoreSnapshot, limits: StoreLimits) throws(StoreError) {
        self.backend = backend
        self.limits = limits
        status = Mutex(.open(snapshot))
        let version = snapshot.version
        try startThread { self.run(from: version) }
    }

    // MARK: For every thread

    package var version: UInt64 {
        status.withLock { status in
            switch status {
            case .open(let snapshot): snapshot.version
            case .ended(_, let version): version
            }
        }
    }

    package func snapshot() throws(StoreError) -> any StoreSnapshot {
        switch status.withLock({ $0 }) {
        case .open(let snapshot): return snapshot
        case .ended(let error, _): throw error
        }
    }

    package func submit<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome,
        completion: @escaping @Sendable (Result<Committed<Outcome>, any Error>) -> Void
    ) {
        enqueue(.write(SubmittedWrite(body, completion: completion)))
    }

    package func submitSnapshot(
        endsGroup: Bool, _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) {
        enqueue(.snapshot(PendingSnapshot(endsGroup: endsGroup, completion: completion)))
    }

    private func enqueue(_ submission: Submission) {
        if !queue.append(submission) { submission.refuse(endOfStore) }
    }

    package func observe(
        _ observer: @escaping @Sendable (CommitGroup) -> Void, ended: @escaping @Sendable (StoreError) -> Void
    ) -> CommitObservation {
        observers.add(observer, ended: ended)
    }

    package var statistics: [String: Double] {
        [
            "store.version": Double(version),
            "store.groups": Double(groups.load(ordering: .relaxed)),
            "store.waiting_writes": Double(queue.count),
        ]
    }

    /// Ends the store as a failed commit would, for a write that did not come from a closure.
    package func fail(_ error: StoreError) {
        verdict.withLock { $0 = $0 ?? error }
        submit({ _ in }, completion: { _ in })
    }

    /// Takes no more closures; the thread answers those it has, then ends.
    package func stop() { queue.close() }

    package func waitUntilEnded() { hasEnded.wait() }

    private var endOfStore: StoreError {
        switch status.withLock({ $0 }) {
        case .open: .closed(cause: nil)
        case .ended(let error, _): error
        }
    }

    // MARK: The writer's thread

    private func run(from version: UInt64) {
        var version = version
        var waiting: [Submission] = []
        while queue.takeAll(into: &waiting) {
            var done = 0
            while done < waiting.count {
                do {
                    done = try commitGroup(of: waiting, from: done, version: &version)
                } catch {
                    return end(because: error, refusing: waiting[done...])
                }
            }
            waiting.removeAll(keepingCapacity: waiting.count <= 4 * limits.groupWritesMax)
        }
        end(with: .closed(cause: nil), version: version)
    }

    /// Commits the next group of `waiting`; returns where it ends.
    private func commitGroup(
        of waiting: [Submission], from start: Int, version: inout UInt64
    ) throws(StoreError) -> Int {
        if let error = verdict.withLock({ $0 }) { throw error }
        let last = min(waiting.count, start + limits.groupWritesMax)
        var group = PlannedGroup(on: try snapshot(), answersMax: last - start)
        var end = start
        while end < last, group.bytes < limits.groupBytesMax {
            switch waiting[end] {
            case .write(let write): apply(write, to: &group)
            case .snapshot(let pending):
                group.reachSnapshot(backend.snapshot(at:))
                group.add(.snapshot(pending, group.snapshot))
                if pending.endsGroup { group.endPart() }
            }
            end += 1
        }
        group.reachSnapshot(backend.snapshot(at:))
        if group.version > version {
            let start = ContinuousClock.now
            try backend.makeDurable(through: group.version)
            group.syncTime = ContinuousClock.now - start
            version = group.version
            Failpoint.commitBeforePublish.pass()
            publish(group.snapshot)
            Failpoint.commitAfterPublish.pass()
        }
        group.endPart()
        group.handOut(to: observers)
        return end
    }

    private func apply(_ write: any PendingWrite, to group: inout PlannedGroup) {
        let transaction = backend.begin(nextVersion: group.version + 1)
        let isPlanned = write.plan(on: transaction)
        transaction.finish()
        if isPlanned, let problem = transaction.phase.problem { write.fail(problem) }
        if !isPlanned || transaction.phase.problem != nil {
            backend.discard(transaction)
        } else if transaction.phase.hasWritten {
            backend.apply(transaction)
            group.add(
                Commit(version: transaction.nextVersion, record: transaction.recorded, note: transaction.note),
                bytes: transaction.writtenBytes)
        }
        group.add(.write(write, group.version))
    }

    private func publish(_ snapshot: any StoreSnapshot) {
        groups.wrappingAdd(1, ordering: .relaxed)
        let old = status.withLock { status in
            defer { status = .open(snapshot) }
            return status
        }
        // The old snapshot goes here, outside the lock: releasing it may take a lock of the database.
        _ = old
    }

    private func end(because error: StoreError, refusing submissions: ArraySlice<Submission>) {
        let ended = StoreError.closed(cause: error.description)
        let version = version
        setStatus(ended, version: version)
        queue.close()
        for submission in submissions { submission.refuse(ended) }
        var waiting: [Submission] = []
        while queue.takeAll(into: &waiting) {
            for submission in waiting { submission.refuse(ended) }
            waiting = []
        }
        end(with: ended, version: version)
    }

    private func end(with error: StoreError, version: UInt64) {
        setStatus(error, version: version)
        backend.shutDown()
        observers.end(error)
        hasEnded.open()
    }

    private func setStatus(_ error: StoreError, version: UInt64) {
        let old = status.withLock { status in
            defer { status = .ended(error, version: version) }
            return status
        }
        _ = old
    }
}
