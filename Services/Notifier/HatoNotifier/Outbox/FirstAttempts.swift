import HatoStorage
import Synchronization

/// Lets requests wait for what becomes of the first attempts of a notification.
///
/// Guarded by a lock. A request holds one entry while it waits.
final class FirstAttempts: Sendable {
    /// By notification.
    private let waiting = Mutex<[String: AsyncStream<Void>.Continuation]>([:])

    init() {}

    /// Attempts of these notifications, or deliveries without one, have ended durably.
    func ended(of notifications: some Sequence<String>) {
        waiting.withLock { waiting in
            guard !waiting.isEmpty else { return }
            for notification in notifications { waiting[notification]?.yield() }
        }
    }

    /// These deliveries of a notification once each of them had an attempt or has ended, or as they are after `limit`.
    /// One that cannot be read is left out.
    func deliveries(
        _ numbers: [UInt32], of notification: String, in store: any Store, within limit: Duration
    ) async throws -> [UInt32: DeliveryRecord] {
        let signals = signals(of: notification)
        let timer = Task {
            try await Task.sleep(for: limit)
            stop(notification)
        }
        defer {
            timer.cancel()
            stop(notification)
        }
        var found = try await Self.read(numbers, of: notification, in: store)
        var iterator = signals.makeAsyncIterator()
        while true {
            let open = found.filter { !$1.hadAttempt }.map(\.key)
            guard !open.isEmpty, await iterator.next() != nil else { return found }
            found.merge(try await Self.read(open, of: notification, in: store)) { $1 }
        }
    }

    private static func read(
        _ numbers: [UInt32], of notification: String, in store: any Store
    ) async throws -> [UInt32: DeliveryRecord] {
        try await store.read { snapshot in
            var found: [UInt32: DeliveryRecord] = [:]
            for number in numbers {
                found[number] = try snapshot.readable(DeliveryRecord.self, DeliveryRecord.key(notification, number))
            }
            return found
        }
    }

    /// Signals until `stop`; one that is not taken yet stands for later ones, too.
    private func signals(of notification: String) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        waiting.withLock { $0[notification] = continuation }
        return stream
    }

    private func stop(_ notification: String) {
        waiting.withLock { $0.removeValue(forKey: notification) }?.finish()
    }
}

extension DeliveryRecord {
    fileprivate var hadAttempt: Bool { machine.isFinished || machine.lastAttempt != nil }
}
