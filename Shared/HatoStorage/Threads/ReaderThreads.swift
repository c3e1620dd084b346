/// The threads that run the reads of a store: some for short reads, and others, with a lower priority, for long ones.
/// So a short read waits for short reads only, however many clients have long ones.
package final class ReaderThreads: Sendable {
    private let short: ReaderPool
    private let long: ReaderPool

    /// Throws when the operating system gives no threads.
    package init(_ limits: StoreLimits) throws(StoreError) {
        short = try ReaderPool(threads: limits.readerThreads)
        long = try ReaderPool(threads: limits.longReaderThreads, isLowPriority: true)
    }

    /// The number of reads that wait.
    package var count: Int { short.count + long.count }

    /// As `Store.submitRead`.
    package func submit(of client: String?, isLong: Bool, _ job: @escaping @Sendable () -> Void) {
        (isLong ? long : short).submit(of: client, job)
    }

    /// Refuses further reads; those that wait still run.
    package func close() {
        short.close()
        long.close()
    }
}
