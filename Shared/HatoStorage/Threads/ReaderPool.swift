/// A few threads that may block on a disk, so that no event loop and no thread of the cooperative pool has to. Clients
/// take turns (`TurnQueue`), and no client alone has all threads: long jobs of one leave a thread to the others and to
/// the service.
package final class ReaderPool: Sendable {
    private let jobs: ReaderJobs

    /// Throws when the operating system gives no threads.
    ///
    /// - Parameter isLowPriority: whether the threads have a lower priority than others (`lowerThreadPriority`).
    package init(threads: Int, isLowPriority: Bool = false) throws(StoreError) {
        jobs = ReaderJobs(ofOneClient: max(1, threads - 1), threads: max(1, threads))
        for _ in 0..<max(1, threads) {
            let jobs = jobs
            try startThread {
                if isLowPriority { lowerThreadPriority() }
                var ended = ReaderJobs.Ended()
                while let next = jobs.takeNext(after: ended) {
                    let start = monotonicNanoseconds()
                    next.job()
                    ended = ReaderJobs.Ended(turn: next.turn, time: nanoseconds(since: start))
                }
            }
        }
    }

    deinit { jobs.close() }

    /// The number of jobs that wait.
    package var count: Int { jobs.count }

    /// Runs the job on a thread of the pool; after `close`, on the calling thread, where it finds a closed store.
    ///
    /// - Parameter client: nil for a job of the service.
    package func submit(of client: String?, _ job: @escaping @Sendable () -> Void) {
        if !jobs.append(job, of: client) { job() }
    }

    package func close() { jobs.close() }
}

/// The jobs that wait for a thread.
///
/// `@unchecked Sendable`: every variable is guarded by `condition`.
private final class ReaderJobs: @unchecked Sendable {
    typealias Job = @Sendable () -> Void

    /// A job that has run.
    struct Ended {
        var turn: TurnQueue<Job>.Turn?
        /// What it took, in nanoseconds.
        var time = 0
    }

    private let condition = ThreadCondition()
    private let threads: Int
    private var jobs: TurnQueue<Job>
    private var sleepers = 0
    /// Whether a sleeper was woken and has not looked for a job yet. It wakes the next one when jobs are left: of
    /// threads that were woken for each of many jobs at once, most would find no job.
    private var isOneWaking = false
    private var isClosed = false

    /// - Parameter runningMax: how many of one client may run at a time.
    init(ofOneClient runningMax: Int, threads: Int) {
        jobs = TurnQueue(runningMax: runningMax)
        self.threads = threads
    }

    var count: Int { condition.withLock { jobs.count } }

    /// Returns false when the queue is closed: then no thread runs the job.
    func append(_ job: @escaping Job, of client: String?) -> Bool {
        let (isTaken, wakes) = condition.withLock {
            if isClosed { return (false, false) }
            jobs.append(job, of: client)
            return (true, mustWake())
        }
        // Not inside the lock, for which the thread would wait.
        if wakes { condition.signal() }
        return isTaken
    }

    /// Whether to send a signal. It costs a system call, so it is sent only when a thread sleeps that finds a job: a
    /// job may have to wait until another one of its client has ended, and is then taken by the thread that ran that.
    /// While all threads sleep each job sends one, so that none waits for ever where a signal was lost (glibc bug
    /// 25847).
    private func mustWake() -> Bool {
        guard sleepers > 0, !isOneWaking || sleepers == threads, jobs.hasNext else { return false }
        isOneWaking = true
        return true
    }

    /// Sleeps until a job may run; nil when the queue is closed, and each job that still waits is for a thread that
    /// runs one of the same client.
    ///
    /// - Parameter ended: the job that this thread has run before.
    func takeNext(after ended: Ended) -> (job: Job, turn: TurnQueue<Job>.Turn)? {
        let (next, wakes) = condition.withLock { () -> ((job: Job, turn: TurnQueue<Job>.Turn)?, Bool) in
            if let turn = ended.turn { jobs.ended(turn, after: ended.time) }
            while true {
                if let next = jobs.takeNext() { return (next, mustWake()) }
                if isClosed { return (nil, false) }
                sleepers += 1
                condition.wait()
                sleepers -= 1
                isOneWaking = false
            }
        }
        if wakes { condition.signal() }
        return next
    }

    /// Refuses further jobs; those that wait still run.
    func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
        }
    }
}
