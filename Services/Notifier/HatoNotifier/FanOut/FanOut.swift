import HatoStorage
import Logging

/// Makes the deliveries of notifications that go to many devices. Jobs take turns, page by page, so that a large one
/// does not delay small ones; each page is a transaction among those of others. A page is made when the queues have
/// taken what is due: what is sent meanwhile waits behind one page, not behind a topic.
actor FanOut {
    private let outbox: Outbox
    private let logger: Logger
    private var timer: Task<Void, Never>?
    /// When the last page was made.
    private var lastPageAt: Int64 = 0
    /// When it was looked last for jobs that end, since no page could be made.
    private var lastLookAt: Int64 = 0
    /// How long to wait after a failure.
    private static let pause = Duration.seconds(1)
    /// A page is made after so many milliseconds, though queues are behind: else a job would never end beside too much
    /// of other work.
    private static let pageAfter: Int64 = 1_000

    init(_ outbox: Outbox, logger: Logger) {
        (self.outbox, self.logger) = (outbox, logger)
    }

    /// Until cancelled.
    func run() async {
        // Jobs of the process before.
        outbox.fanOuts.bell.ring()
        for await _ in outbox.fanOuts.bell.rings { await makeAll() }
        timer?.cancel()
    }

    /// Returns when no job is left, or further pages must wait.
    private func makeAll() async {
        var last: RecordKey?
        while !Task.isCancelled {
            do {
                let pages = FanOutPages(outbox)
                guard mayMake(pages) else {
                    try await endExpired(pages)
                    return ringLater()
                }
                guard let job = try await pages.turn(after: last) else { return }
                Failpoint.pushAfterPage.pass()
                (last, lastPageAt) = (job, outbox.time.now())
            } catch {
                if let failed = error as? FanOutPages.FailedPage { last = failed.job }
                logger.error("deliveries to many devices cannot be made", metadata: ["error": "\(error)"])
                do { try await outbox.time.sleepUntil(outbox.time.now() + Self.pause.milliseconds) } catch { return }
            }
        }
    }

    /// What waits though no queue is behind may wait for hours: for the end of a quiet window, for a provider that is
    /// paused, or as an e-mail. Then pages go on, though slowly, and not up to the end of the outbox.
    private func mayMake(_ pages: FanOutPages) -> Bool {
        let hasWaited = outbox.time.now() - lastPageAt >= Self.pageAfter
        if pages.fits { return outbox.fanOuts.isClear || hasWaited }
        return pages.fitsSlowly && outbox.fanOuts.isClear && hasWaited
    }

    /// Jobs end at their time, also when no page is made meanwhile.
    private func endExpired(_ pages: FanOutPages) async throws {
        let now = outbox.time.now()
        guard now - lastLookAt >= Self.pageAfter else { return }
        try await pages.endExpired()
        lastLookAt = now
    }

    /// Queues ring when they are behind no more; this is for those that remain so.
    private func ringLater() {
        timer?.cancel()
        // Unstructured: it only rings, and is cancelled by the next one or the end of `run`.
        timer = Task { [outbox] in
            do { try await outbox.time.sleepUntil(outbox.time.now() + Self.pageAfter) } catch { return }
            outbox.fanOuts.bell.ring()
        }
    }
}
