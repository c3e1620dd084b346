import Synchronization

/// The one writer of a store: runs submitted writes in order, makes those that wait together durable with one sync,
/// then publishes the snapshot, then notifies observers, then calls completions.
///
/// **Order.** There is one queue and one planning thread, so writes run one after the other, each on what its
/// predecessors applied: those of a client in the order they were submitted, and clients in turn when many wait
/// (`PlanningOrder`). Observers and completions run group after group, in the same order, one at a time.
///
/// **Two threads.** A group that is large enough becomes durable on a second thread (`SyncThread`) while the planning
/// thread plans the next one; at most one group is there at a time. The planning thread settles a group itself when the
/// group is small or must not be overtaken: a single client waits for no second thread.
///
/// **Durable, then visible, then acknowledged.** What a write applies is seen only by the writes after it.
/// `makeDurable` comes next, then the snapshot is published, then observers and completions run: no observer or client
/// learns of a commit that a crash could take back. The same holds for writes that put nothing or threw: their outcome
/// may depend on an earlier write, so they complete after it.
///
/// **Snapshots inside a group.** Transactions are applied one after the other, so the state between two of them can be
/// kept on request (`submitSnapshot`); it is handed over after the sync like everything else.
///
/// **Failure.** When applying or syncing fails, the group and everything after it is refused, the store is closed and
/// the threads end. The refusal of each write says whether the write may have reached the log. Nothing is tried again:
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
    /// Guarded by its mutex; changed by the thread that settles a group.
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
            // A thread that has just ended may hold the backend a moment longer than the caller holds the lock of its
            // files.
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

    // MARK: Any thread

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
        of client: String?, endsGroup: Bool,
        _ completion: @escaping @Sendable (Result<any StoreSnapshot, StoreError>) -> Void
    ) {
        enqueue(.snapshot(PendingSnapshot(client: client, endsGroup: endsGroup, completion: completion)))
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

    /// Ends the store as a failed commit does, for an error outside the submitted writes.
    package func fail(_ error: StoreError) {
        verdict.withLock { $0 = $0 ?? error }
        submit(SubmittedWrite({ _ in }, completion: { _ in }))
    }

    /// Refuses new writes; the thread completes those it has, then ends.
    package func stop() { queue.close() }

    package func waitUntilEnded() { hasEnded.wait() }

    private var endOfStore: StoreError {
        switch status.withLock({ $0 }) {
        case .open: .closed(cause: nil)
        case .ended(let error, _): error
        }
    }

    // MARK: Planning thread

    /// What is planned and not handed on yet; each accepted submission is in here once.
    private struct Planned {
        var group: PlannedGroup
        var order = PlanningOrder()
        /// What has arrived meanwhile; empty between two looks.
        var arriving: [Submission] = []
        /// When the submission before was planned, in nanoseconds.
        var time: UInt64 = 0
        /// What planning the group has taken, in nanoseconds.
        var groupTime = 0
        /// Whether the next group can probably be settled while more is planned.
        var overlaps = true

        /// A submission has been planned. Returns what that took.
        mutating func timePassed() -> Int {
            let passed = nanoseconds(since: time)
            time &+= UInt64(passed)
            groupTime += passed
            return passed
        }
    }

    private func run(from version: UInt64) {
        var planned = Planned(group: PlannedGroup(after: version, nil))
        do throws(StoreError) {
            while queue.takeAll(into: &planned.order.arrived, untilNudged: planned.group.count > 0) {
                try plan(&planned)
            }
            try send(&planned)
            try syncThread.waitUntilIdle()
        } catch {
            return end(because: error, refusing: planned)
        }
        end(with: .closed(cause: nil), version: planned.group.version)
    }

    /// Plans the submissions that waited together. Groups that are large enough are handed to the sync thread as soon
    /// as it is idle. The rest is handed to it too, or is made durable here; while another group is in progress, the
    /// rest may still grow.
    private func plan(_ planned: inout Planned) throws(StoreError) {
        planned.order.arrange()
        planned.time = monotonicNanoseconds()
        while let submission = planned.order.first {
            if let error = verdict.withLock({ $0 }) { throw error }
            if case .snapshot = submission {
                try syncThread.waitUntilIdle()
                // The client is not charged for the sync of others.
                planned.time = monotonicNanoseconds()
            }
            switch submission {
            case .write(let write): apply(write, to: &planned.group)
            case .snapshot(let pending): try add(pending, to: &planned.group)
            }
            planned.order.removeFirst(after: planned.timePassed())
            if planned.order.isDue {
                queue.takeWaiting(into: &planned.arriving)
                planned.order.add(&planned.arriving)
            }
            let isFull = planned.group.count >= limits.groupWritesMax || planned.group.bytes >= limits.groupBytesMax
            if isFull || syncThread.isIdle && isEnough(planned) {
                try send(&planned)
                planned.time = monotonicNanoseconds()
            }
        }
        planned.order.removePlanned()
        if syncThread.isIdle { try send(&planned) }
    }

    /// Whether a group is worth a sync while more is planned. One that has taken long is: its writes wait for it.
    private func isEnough(_ planned: Planned) -> Bool {
        planned.overlaps && planned.group.count >= limits.overlapWritesMin
            || planned.groupTime / 1_000 >= limits.groupMicrosecondsMax
    }

    private func add(_ pending: PendingSnapshot, to group: inout PlannedGroup) throws(StoreError) {
        let published = try snapshot()
        if group.version > (group.snapshot ?? published).version { _ = backend.seal() }
        group.add(.snapshot(pending, group.reachSnapshot(from: published, backend.snapshot(at:derived:))))
        if pending.endsGroup { group.endPart() }
    }

    /// Makes what is planned durable: on the sync thread, or on this thread when the group is small or must be durable
    /// before anything else is planned.
    private func send(_ planned: inout Planned) throws(StoreError) {
        try syncThread.waitUntilIdle()
        if planned.group.count == 0 { return }
        planned.overlaps = backend.seal()
        if planned.overlaps, isEnough(planned) {
            syncThread.take(planned.group)
        } else {
            try settle(&planned.group)
        }
        planned.group = PlannedGroup(after: planned.group.version, planned.group.derived)
        planned.groupTime = 0
    }

    // MARK: Planning thread or sync thread, one at a time

    /// Makes a sealed group durable, publishes it and calls its completions. When this throws, the completions left in
    /// the group have not run.
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
        // What is durable completes with success; only later submissions learn that the store has ended.
        group = PlannedGroup(after: group.version, group.derived)
        if hasCommits { try backend.checkHealth() }
    }

    /// Runs on the sync thread after each group. After one that failed there are no more, and nothing is submitted to
    /// it.
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
        let phase = transaction.phase
        if failure == nil { failure = phase.problem }
        if let failure {
            backend.discard(transaction)
            return group.add(.write(write, .failure(failure), hasCommit: false))
        }
        if phase.hasWritten {
            backend.apply(transaction)
            group.add(
                Commit(version: transaction.nextVersion, record: transaction.recorded, note: transaction.note),
                bytes: transaction.writtenBytes, transaction.newDerived)
        }
        group.add(.write(write, .success(group.version), hasCommit: phase.hasWritten))
    }

    private func publish(_ snapshot: any StoreSnapshot) {
        groups.wrappingAdd(1, ordering: .relaxed)
        let old = status.withLock { status in
            defer { status = .open(snapshot) }
            return status
        }
        // The old snapshot is released here, outside the lock: releasing it may take a lock of the database.
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
        for submission in planned.order.rest + planned.arriving { submission.refuse(ended) }
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
