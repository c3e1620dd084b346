/// The threads that run the reads of a store: some for reads of a moment, and others, which give way to them, for reads
/// that may take longer. So a read of a moment waits for reads of a moment only, however many clients have long ones.
package final class ReaderThreads: Sendable {
    private let short: ReaderPool
    private let long: ReaderPool

    /// Throws when the operating system gives no threads.
    package init(_ limits: StoreLimits) throws(StoreError) {
        short = try ReaderPool(threads: limits.readerThreads)
        long = try ReaderPool(threads: limits.longReaderThreads, givesWay: true)
    }

    /// The number of reads that wait.
    package var count: Int { short.count + long.count }

    /// As `Store.submitRead`.
    package func submit(of client: String?, isLong: Bool, _ job: @escaping @Sendable () -> Void) {
        (isLong ? long : short).submit(of: client, job)
    }

    package func close() {
        short.close()
        long.close()
    }
}
