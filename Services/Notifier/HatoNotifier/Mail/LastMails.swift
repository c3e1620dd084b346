import HatoModel
import HatoPush
import Synchronization

/// When an e-mail of each app was taken last, since the start: a server that takes those of others knows what it
/// refuses.
final class LastMails: Sendable {
    /// By the app, of which an operator makes few.
    private let times = Mutex<[String: Int64]>([:])

    func remember(_ ended: [EndedAttempt], at now: Int64) {
        for attempt in ended where attempt.lease.platform == .email {
            guard case .delivered = attempt.outcome else { continue }
            times.withLock { $0[attempt.lease.delivery.app] = now }
        }
    }

    /// Nil: none was, or the device is no mailbox.
    func time(of device: DeviceRecord) -> Int64? {
        guard device.platform == .email else { return nil }
        return times.withLock { $0[device.app ?? Delivery.defaultApp] }
    }
}
