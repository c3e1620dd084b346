import HatoStorage
import Logging

/// Makes the deliveries of notifications that go to many devices. Jobs take turns, page by page, so that a large one
/// does not delay small ones; each page is a transaction among those of others.
struct FanOut: Sendable {
    private let outbox: Outbox
    private let logger: Logger
    /// How long to wait after a failure.
    private static let pause = Duration.seconds(1)

    init(_ outbox: Outbox, logger: Logger) {
        (self.outbox, self.logger) = (outbox, logger)
    }

    /// Until cancelled.
    func run() async {
        // Jobs of the process before.
        outbox.fanOuts.bell.ring()
        for await _ in outbox.fanOuts.bell.rings { await makeAll() }
    }

    /// Returns when no job is left.
    private func makeAll() async {
        var last: RecordKey?
        while !Task.isCancelled {
            do {
                guard let job = try await FanOutPages(outbox).turn(after: last) else { return }
                Failpoint.pushAfterPage.pass()
                last = job
            } catch {
                logger.error("deliveries to many devices cannot be made", metadata: ["error": "\(error)"])
                do { try await outbox.time.sleepUntil(outbox.time.now() + Self.pause.milliseconds) } catch { return }
            }
        }
    }
}
