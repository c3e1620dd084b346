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
        var refused: Set<RefusedDevices.Device> = []
    }

    /// The newest last; none is older than the window.
    private var recent: [Slot] = []
    /// Those of all slots.
    private var refused = RefusedDevices(ofUserMax: Self.devicesOfUserMax)

    /// Returns whether the queue must stop.
    mutating func attemptEnded(_ outcome: DeliveryOutcome, of lease: Lease, at now: Int64) -> Bool {
        guard outcome.response.status != nil else { return false }
        // A mailbox that is refused for days says nothing new, however often it is tried.
        if case .tokenRefused = outcome, lease.platform == .email, lease.isKnownRefused { return false }
        begin(slot: now / (Self.window / Self.slots))
        let last = recent.count - 1
        recent[last].responses += 1
        guard case .tokenRefused = outcome, lease.hasSucceeded else { return false }
        let content = lease.delivery.content
        // A token without a user is one.
        let device = RefusedDevices.Device(
            user: content.uid.isEmpty ? content.device : content.uid, device: content.device)
        if recent[last].refused.insert(device).inserted { refused.add(device) }
        guard refused.count >= Self.devicesMax else { return false }
        return refused.count * Self.shareMax >= recent.reduce(0) { $0 + $1.responses }
    }

    private mutating func begin(slot number: Int64) {
        // Also when the clock was put back.
        func isOver(_ slot: Slot) -> Bool { number - slot.number >= Self.slots || slot.number > number }
        for slot in recent where isOver(slot) {
            for device in slot.refused { refused.remove(device) }
        }
        recent.removeAll(where: isOver)
        if recent.last?.number != number { recent.append(Slot(number: number)) }
    }
}

/// Refused devices, of which a few count of each user. The number is kept, since it is looked at after each refusal.
private struct RefusedDevices {
    struct Device: Hashable {
        var user: String
        var device: String
    }

    let ofUserMax: Int
    /// How many count.
    private(set) var count = 0
    /// In how many slots each device is, by user.
    private var slots: [String: [String: Int]] = [:]

    init(ofUserMax: Int) { self.ofUserMax = ofUserMax }

    /// It is in one slot more.
    mutating func add(_ device: Device) {
        let before = counted(of: device.user)
        slots[device.user, default: [:]][device.device, default: 0] += 1
        count += counted(of: device.user) - before
    }

    /// It is in one slot less.
    mutating func remove(_ device: Device) {
        let before = counted(of: device.user)
        let left = (slots[device.user]?[device.device] ?? 0) - 1
        slots[device.user]?[device.device] = left > 0 ? left : nil
        count += counted(of: device.user) - before
        if slots[device.user]?.isEmpty == true { slots[device.user] = nil }
    }

    private func counted(of user: String) -> Int { min(slots[user]?.count ?? 0, ofUserMax) }
}
