/// Passes jobs from the threads that submit them to the threads that run them, in order.
///
/// `@unchecked Sendable`: every variable is guarded by `condition`.
package final class JobQueue<Job: Sendable>: @unchecked Sendable {
    private let condition = ThreadCondition()
    private var jobs: [Job] = []
    private var sleepers = 0
    private var isNudged = false
    private var awaitsNudge = false
    private var isClosed = false

    package init() {}

    package var count: Int { condition.withLock { jobs.count } }

    /// Returns false when the queue is closed: then no thread runs the job.
    package func append(_ job: Job) -> Bool {
        let (isTaken, wakes) = condition.withLock {
            if isClosed { return (false, false) }
            jobs.append(job)
            // A signal costs a system call, so it is sent only when a thread sleeps.
            return (true, sleepers > 0)
        }
        // Not inside the lock, for which the thread would wait.
        if wakes { condition.signal() }
        return isTaken
    }

    /// Sleeps until there are jobs, and moves all of them into `taken`, which must be empty: the two buffers are
    /// swapped, so that neither side allocates. Returns false when the queue is closed and empty.
    ///
    /// - Parameter untilNudged: a nudge ends the sleep too, also one that came before it; then `taken` may stay empty.
    package func takeAll(into taken: inout [Job], untilNudged: Bool = false) -> Bool {
        condition.withLock {
            guard sleepUntilThereIsWork(orNudge: untilNudged) else { return false }
            isNudged = false
            swap(&jobs, &taken)
            return true
        }
    }

    /// Moves the jobs that wait into `taken`, which must be empty, without sleeping.
    package func takeWaiting(into taken: inout [Job]) {
        condition.withLock { if !jobs.isEmpty { swap(&jobs, &taken) } }
    }

    /// Ends the sleep of the one thread that accepts nudges.
    package func nudge() {
        condition.withLock {
            isNudged = true
            if awaitsNudge { condition.signal() }
        }
    }

    /// Refuses further jobs; those that wait still run.
    package func close() {
        condition.withLock {
            isClosed = true
            condition.broadcast()
        }
    }

    private func sleepUntilThereIsWork(orNudge: Bool) -> Bool {
        while jobs.isEmpty {
            if orNudge, isNudged { return true }
            if isClosed { return false }
            sleepers += 1
            awaitsNudge = orNudge
            condition.wait()
            awaitsNudge = false
            sleepers -= 1
        }
        return true
    }
}
