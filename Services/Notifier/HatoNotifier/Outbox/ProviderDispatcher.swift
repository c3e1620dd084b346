import HatoFetch
import HatoModel
import HatoPush
import HatoRPC
import Logging
import Synchronization

/// A dispatcher for each provider queue that has deliveries, from its first one on: as many as apps have platforms.
final class ProviderDispatcher: Sendable {
    private let outbox: Outbox
    private let channels: [any Channel]
    private let results: ResultWriter
    private let notices: ThrottledNotices
    private let dispatchers = Mutex<[ProviderQueue: QueueDispatcher]>([:])
    /// Queues that were stopped when the process started.
    private let stopped: [ProviderQueue: StoppedQueueRecord]
    private let begun: AsyncStream<QueueDispatcher>
    private let begin: AsyncStream<QueueDispatcher>.Continuation

    /// Throws the errors of the store.
    init(_ outbox: Outbox, channels: [any Channel], _ results: ResultWriter, logger: Logger) async throws {
        (self.outbox, self.channels, self.results) = (outbox, channels, results)
        notices = ThrottledNotices(logger)
        stopped = try await ProviderQueues(outbox).stopped()
        // One for each queue.
        (begun, begin) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
        for queue in try await ProviderQueues(outbox).all() + stopped.keys { wake(queue, DueTimes()) }
        outbox.onDue { [weak self] queue, due in self?.wake(queue, due) }
    }

    /// Works until `stop`; then finishes the attempts in flight.
    func run() async {
        await withDiscardingTaskGroup { group in
            for await dispatcher in begun {
                group.addTask(executorPreference: ClientLoop()) { await dispatcher.run() }
            }
        }
    }

    /// Begins no more attempts; `run` returns when those in flight have ended.
    func stop() async {
        begin.finish()
        for dispatcher in dispatchers.withLock({ Array($0.values) }) { await dispatcher.stop() }
    }

    /// Lets queues of an app go on, those of all platforms when none is named. Throws the errors of the store.
    func resume(app: String, _ platform: Notifier.Platform? = nil) async throws {
        for dispatcher in known(of: app) where platform == nil || dispatcher.queue.platform == platform {
            try await dispatcher.resume()
        }
    }

    /// Calls all providers again, since their credentials may have changed; stopped queues stay so.
    func retry() async { for dispatcher in dispatchers.withLock({ Array($0.values) }) { await dispatcher.retry() } }

    /// What is known of the providers that had deliveries, by queue.
    var statuses: [ProviderQueue: Notifier.AppProvider] {
        get async {
            var statuses: [ProviderQueue: Notifier.AppProvider] = [:]
            for dispatcher in dispatchers.withLock({ Array($0.values) }) {
                statuses[dispatcher.queue] = await dispatcher.status
            }
            return statuses
        }
    }

    /// Whether an app has or had deliveries.
    func knows(app: String) -> Bool { !known(of: app).isEmpty }

    private func known(of app: String) -> [QueueDispatcher] {
        dispatchers.withLock { $0.values.filter { $0.queue.app == app } }
    }

    private func wake(_ queue: ProviderQueue, _ due: DueTimes) {
        let (dispatcher, isNew) = dispatchers.withLock { dispatchers in
            if let known = dispatchers[queue] { return (known, false) }
            let new = QueueDispatcher(
                queue, outbox, channel: channels.first { $0.platform == queue.platform }, results,
                stopped: stopped[queue], notices: notices)
            dispatchers[queue] = new
            return (new, true)
        }
        if isNew { begin.yield(dispatcher) } else { dispatcher.wake(due) }
    }
}
