import Synchronization

/// The one writer of a store: runs submitted writes in order, makes those that wait together durable with one sync,
/// then publishes, then tells observers, then answers.
///
/// **Order.** There is one queue, and one thread that plans, so writes run in the order they were submitted, each on
/// what its predecessors applied. Observers and completions run group after group, in the same order, one at a time.
///
/// **Two threads.** A group that is worth it becomes durable on a thread of its own (`SyncThread`), while the next is
/// planned on it; there is never more than one on its way. Where it must not be overtaken, or is small, the planning
/// thread carries it to its end itself: a single client waits for no second thread.
///
/// **Durable, then visible, then answered.** What a write applies is seen by the writes after it only. `makeDurable`
/// comes next, then the snapshot is published, then observers and completions run: nobody outside can learn of a
/// commit that a crash could take back. That holds for writes that put nothing, or threw, too: what they answer may
/// rest on what an earlier one wrote, and they are answered behind it.
///
/// **Snapshots inside a group.** Transactions are applied one after the other, so the state between two of them can
/// be kept when somebody asks for it; it is handed over after the sync like everything else.
///
/// **Failure.** When applying or syncing fails, the group and everything behind it is refused, the store is closed
/// and the threads end. Of each write the refusal says whether it may have reached the log. Nothing is tried again:
/// after a failed sync the operating system may have dropped the pages and report success the next time.
package final class GroupCommit<Backend: CommitBackend>: Sendable {
    private enum Status {
        case open(any StoreSnapshot)
        case ended(StoreError, version: UInt64)
    }

    private let backend: Backend
    private let limits: StoreLimits
    private let queue = JobQueue<Submission>()
    private let syncThread = SyncThread()
    private let observers = CommitObservers()
    /// Guarded by its mutex; changed by whoever carries a group to its end.
    private let status: Mutex<Status>
    /// Why the store must end although no commit has failed yet.
    private let verdict = Mutex<StoreError?>(nil)
    private let groups = Atomic<UInt64>(0)
    private let hasEnded = Latch()

    /// Throws when a thread cannot be started; then the backend is shut down.
    ///
    /// - Parameter start: starts each of the two threads.
    package init(
        _ backend: Backend, at snapshot: any StoreSnapshot, limits: StoreLimits,
        startingThreadsBy start: (@escaping @Sendable () -> Void) throws(StoreError) -> Void = startThread
    ) throws(StoreError) {
        self.backend = backend
        self.limits = limits
        status = Mutex(.open(snapshot))
        let version = snapshot.version
        do throws(StoreError) {
            try startSyncThread(by: start)
            do throws(StoreError) {
                try start { self.run(from: version) }
            } catch {
                _ = syncThread.close()
                syncThread.waitUntilEnded()
                throw error
            }
        } catch {
            // A thread that has just ended may hold the backend a moment longer than the caller holds its files' lock.
            backend.shutDown()
            throw error
        }
    }

    private func startSyncThread(
        by start: (@escaping @Sendable () -> Void) throws(StoreError) -> Void
    ) throws(StoreError) {
        try syncThread.start(by: start) { group throws(StoreError) in
            try self.settle(&group)
        } settled: { error in
            self.settled(error)
        }
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

    package func submit(_ write: any StoreWrite) { enqueue(.write(write)) }

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

    /// Ends the store as a failed commit would, for something that was not submitted.
    package func fail(_ error: StoreError) {
        verdict.withLock { $0 = $0 ?? error }
        submit(SubmittedWrite({ _ in }, completion: { _ in }))
    }

    /// Takes no more writes; the thread answers those it has, then ends.
    package func stop() { queue.close() }

    package func waitUntilEnded() { hasEnded.wait() }

    private var endOfStore: StoreError {
        switch status.withLock({ $0 }) {
        case .open: .closed(cause: nil)
        case .ended(let error, _): error
        }
    }

    // MARK: The writer's thread

    /// What is planned and not on its way; each submission that was taken is in here once.
    private struct Planned {
        var group: PlannedGroup
        var waiting: [Submission] = []
        /// So many of them are planned.
        var done = 0
        /// Whether the next group can probably be carried on while more is planned.
        var overlaps = true
    }

    private func run(from version: UInt64) {
        var planned = Planned(group: PlannedGroup(after: version, nil))
        do throws(StoreError) {
            while queue.takeAll(into: &planned.waiting, untilNudged: planned.group.count > 0) {
                try plan(&planned)
            }
            try send(&planned)
            try syncThread.waitUntilIdle()
        } catch {
            return end(because: error, refusing: planned)
        }
        end(with: .closed(cause: nil), version: planned.group.version)
    }

    /// Plans what was waiting together. Groups that are worth another thread's while go there as soon as it is idle.
    /// What is left at the end goes there too, or is made durable here; while another group is on its way, it may
    /// still grow.
    private func plan(_ planned: inout Planned) throws(StoreError) {
        while planned.done < planned.waiting.count {
            if let error = verdict.withLock({ $0 }) { throw error }
            let submission = planned.waiting[planned.done]
            if case .snapshot = submission { try syncThread.waitUntilIdle() }
            switch submission {
            case .write(let write): apply(write, to: &planned.group)
            case .snapshot(let pending): try add(pending, to: &planned.group)
            }
            planned.done += 1
            let isFull = planned.group.count >= limits.groupWritesMax || planned.group.bytes >= limits.groupBytesMax
            let isEnough = planned.overlaps && planned.group.count >= limits.overlapWritesMin
            if isFull || isEnough && syncThread.isIdle { try send(&planned) }
        }
        planned.waiting.removeAll(keepingCapacity: planned.waiting.count <= 4 * limits.groupWritesMax)
        planned.done = 0
        if syncThread.isIdle { try send(&planned) }
    }

    private func add(_ pending: PendingSnapshot, to group: inout PlannedGroup) throws(StoreError) {
        let published = try snapshot()
        if group.version > (group.snapshot ?? published).version { _ = backend.seal() }
        group.add(.snapshot(pending, group.reachSnapshot(from: published, backend.snapshot(at:derived:))))
        if pending.endsGroup { group.endPart() }
    }

    /// Makes what is planned durable: on the other thread, or here when it is little, or must be there before anything
    /// else is planned.
    private func send(_ planned: inout Planned) throws(StoreError) {
        try syncThread.waitUntilIdle()
        if planned.group.count == 0 { return }
        planned.overlaps = backend.seal()
        if planned.overlaps, planned.group.count >= limits.overlapWritesMin {
            syncThread.take(planned.group)
        } else {
            try settle(&planned.group)
        }
        planned.group = PlannedGroup(after: planned.group.version, planned.group.derived)
    }

    // MARK: The writer's thread, or the other one: one at a time

    /// Carries a group that was sealed to its end. When it throws, what is left of the group has not been answered.
    private func settle(_ group: inout PlannedGroup) throws(StoreError) {
        let published = try snapshot()
        let snapshot = group.reachSnapshot(from: published, backend.snapshot(at:derived:))
        let hasCommits = group.version > published.version
        if hasCommits {
            let start = ContinuousClock.now
            try backend.makeDurable(through: group.version)
            group.syncTime = ContinuousClock.now - start
            Failpoint.commitBeforePublish.pass()
            publish(snapshot)
            Failpoint.commitAfterPublish.pass()
        }
        group.endPart()
        group.handOut(to: observers)
        // What is durable is answered as such; only what comes behind it learns that the store has ended.
        group = PlannedGroup(after: group.version, group.derived)
        if hasCommits { try backend.checkHealth() }
    }

    /// On the other thread, after each group; after one that failed there are no more, and nobody submits anything.
    private func settled(_ error: StoreError?) {
        guard let error else { return queue.nudge() }
        setStatus(.closed(cause: error.description), version: version)
        queue.close()
    }

    private func apply(_ write: any StoreWrite, to group: inout PlannedGroup) {
        let transaction = backend.begin(nextVersion: group.version + 1, derived: group.derived)
        var failure: (any Error)?
        do { try write.write(in: transaction) } catch { failure = error }
        transaction.finish()
        if failure == nil { failure = transaction.phase.problem }
        if let failure {
            backend.discard(transaction)
            return group.add(.write(write, .failure(failure), hasCommit: false))
        }
        if transaction.phase.hasWritten {
            backend.apply(transaction)
            group.add(
                Commit(version: transaction.nextVersion, record: transaction.recorded, note: transaction.note),
                bytes: transaction.writtenBytes, transaction.newDerived)
        }
        group.add(.write(write, .success(group.version), hasCommit: transaction.phase.hasWritten))
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

    private func end(because error: StoreError, refusing planned: Planned) {
        let failed = syncThread.close()
        let ended = failed == nil ? StoreError.closed(cause: error.description) : endOfStore
        let version = version
        setStatus(ended, version: version)
        queue.close()
        let logged = backend.loggedVersion
        failed?.refuse(ended, logged: logged)
        planned.group.refuse(ended, logged: logged)
        for submission in planned.waiting[planned.done...] { submission.refuse(ended) }
        var waiting: [Submission] = []
        while queue.takeAll(into: &waiting) {
            for submission in waiting { submission.refuse(ended) }
            waiting = []
        }
        end(with: ended, version: version)
    }

    private func end(with error: StoreError, version: UInt64) {
        setStatus(error, version: version)
        _ = syncThread.close()
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
