import HatoStorage
import Logging

/// Makes the deliveries of notifications that go to many devices. Jobs take turns, page by page, so that a large one
/// does not delay small ones; each page is a transaction among those of others.
actor FanOut {
    private let outbox: Outbox
    private let logger: Logger
    /// Wakes that are wanted; any number of them before the next one are one.
    private let ticks: AsyncStream<Void>
    private nonisolated let tick: AsyncStream<Void>.Continuation
    /// How long to wait after a failure.
    private static let pause = Duration.seconds(1)

    init(_ outbox: Outbox, logger: Logger) {
        (self.outbox, self.logger) = (outbox, logger)
        (ticks, tick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    nonisolated func wake() { tick.yield() }

    /// Until cancelled.
    func run() async {
        outbox.fanOuts.onCame { [weak self] in self?.wake() }
        // Jobs of the process before.
        wake()
        for await _ in ticks { await makeAll() }
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
