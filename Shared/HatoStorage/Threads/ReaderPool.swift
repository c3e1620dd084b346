/// A few threads that may block on a disk, so that no event loop and no thread of the cooperative pool has to.
package final class ReaderPool: Sendable {
    private let jobs = JobQueue<@Sendable () -> Void>()

    package init(threads: Int) throws(StoreError) {
        for _ in 0..<max(1, threads) {
            let jobs = jobs
            try startThread {
                while let job = jobs.takeOne() { job() }
            }
        }
    }

    deinit { jobs.close() }

    package var count: Int { jobs.count }

    /// After `close` the work is done on the calling thread: it finds a closed store and says so to whoever waits for
    /// it.
    package func submit(_ body: @escaping @Sendable () -> Void) {
        if !jobs.append(body) { body() }
    }

    package func close() { jobs.close() }
}
