/// A few threads that may block on a disk, so that no event loop and no thread of the cooperative pool has to. Clients
/// take turns (`TurnQueue`).
package final class ReaderPool: Sendable {
    private let jobs = ReaderJobs()

    package init(threads: Int) throws(StoreError) {
        for _ in 0..<max(1, threads) {
            let jobs = jobs
            try startThread {
                while let job = jobs.takeNext() { job() }
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

    private let condition = ThreadCondition()
    private var jobs = TurnQueue<Job>()
    private var sleepers = 0
    private var isClosed = false

    var count: Int { condition.withLock { jobs.count } }

    /// Returns false when the queue is closed: then no thread runs the job.
    func append(_ job: @escaping Job, of client: String?) -> Bool {
        condition.withLock {
            if isClosed { return false }
            jobs.append(job, of: client)
            // A signal costs a system call, so it is sent only when a thread sleeps.
            if sleepers > 0 { condition.signal() }
            return true
        }
    }

    /// Sleeps until there is a job; nil when the queue is closed and empty.
    func takeNext() -> Job? {
        condition.withLock {
            while jobs.count == 0 {
                if isClosed { return nil }
                sleepers += 1
                condition.wait()
                sleepers -= 1
            }
            return jobs.takeNext()
        }
    }

    /// Refuses further jobs; those that wait still run.
    func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
        }
    }
}
