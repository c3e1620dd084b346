import HatoModel
import HatoPush

/// Whether so many tokens that had worked are refused that our configuration must be wrong: a wrong environment, topic
/// or project. Then no device may go because of it. Pure: its driver says what time it is, in milliseconds.
struct TokenRefusals: Sendable {
    /// Within a minute: so many devices, which had succeeded before …
    private static let devicesMax = 20
    /// … of which as many count of one user, who could register any number …
    private static let devicesOfUserMax = 5
    /// … and one of so many responses.
    private static let shareMax = 5
    private static let window: Int64 = 60_000
    private static let slots: Int64 = 12

    private struct Slot {
        var number: Int64
        var responses = 0
        /// By user; a token without a user is one.
        var refused: [String: Set<String>] = [:]
    }

    /// The newest last; none is older than the window.
    private var recent: [Slot] = []

    /// Returns whether the queue must stop.
    mutating func attemptEnded(_ outcome: DeliveryOutcome, of lease: Lease, at now: Int64) -> Bool {
        guard outcome.response.status != nil else { return false }
        // A mailbox that is refused for days says nothing new, however often it is tried.
        if case .tokenRefused = outcome, lease.platform == .email, lease.isKnownRefused { return false }
        let number = now / (Self.window / Self.slots)
        // Also when the clock was put back.
        recent.removeAll { number - $0.number >= Self.slots || $0.number > number }
        if recent.last?.number != number { recent.append(Slot(number: number)) }
        let last = recent.count - 1
        recent[last].responses += 1
        guard case .tokenRefused = outcome, lease.hasSucceeded else { return false }
        let content = lease.delivery.content
        recent[last].refused[content.uid.isEmpty ? content.device : content.uid, default: []].insert(content.device)
        let refused = refusedCount
        guard refused >= Self.devicesMax else { return false }
        return refused * Self.shareMax >= recent.reduce(0) { $0 + $1.responses }
    }

    private var refusedCount: Int {
        let devices = recent.reduce(into: [String: Set<String>]()) { all, slot in
            all.merge(slot.refused) { $0.union($1) }
        }
        return devices.values.reduce(0) { $0 + min($1.count, Self.devicesOfUserMax) }
    }
}
