import HatoModel
import HatoPush

/// Which attempts are under way, at which hosts and for which users, and whether one more may begin. Pure.
///
/// A receiver that hangs holds its attempt until the time limit. So that those of one user, or of one host, take
/// nothing from the others, each holds a part of all attempts at most. Slow users have one attempt at a time each, and
/// together half of all: however many accounts have receivers that hang, the others have the other half.
struct AttemptSlots: Sendable {
    /// One attempt that is under way.
    struct Slot: Hashable, Sendable {
        var group: ParkedGroup
        /// Whether its user was slow when it began.
        fileprivate var isSlow: Bool
    }

    /// The groups of lanes that had their turns last; the next ones go on behind them.
    struct Turns: Sendable {
        var ofHosts: ParkedGroup?
        var ofSlowUsers: ParkedGroup?
    }

    private let policy: DeliveryPolicy
    private(set) var count = 0
    /// Of users that were slow when they began.
    private(set) var slowCount = 0
    private var ofUser: [String: Int] = [:]
    private var atHost: [String: Int] = [:]
    private var slowUsers = SlowUsers()
    var turns = Turns()

    init(_ policy: DeliveryPolicy) { self.policy = policy }

    /// How many more may begin in all.
    var free: Int { max(0, policy.attemptsInFlightMax - count) }
    /// How many more of slow users.
    var freeForSlowUsers: Int { max(0, (policy.attemptsInFlightMax + 1) / 2 - slowCount) }
    /// What slow users lack of the part that is theirs before others.
    var owedToSlowUsers: Int { max(0, (policy.attemptsInFlightMax + 7) / 8 - slowCount) }

    func isSlow(_ uid: String, at now: Int64) -> Bool { slowUsers.contains(uid, at: now) }
    func admitsHost(_ host: String) -> Bool { atHost[host, default: 0] < policy.attemptsPerHostMax }

    func admitsUser(_ uid: String, at now: Int64) -> Bool {
        ofUser[uid, default: 0] < (isSlow(uid, at: now) ? 1 : policy.attemptsPerUserMax)
    }

    /// What an attempt would hold; nil when it may not begin now.
    func slot(for group: ParkedGroup, at now: Int64) -> Slot? {
        let slot = Slot(group: group, isSlow: isSlow(group.uid, at: now))
        guard admitsHost(group.host), admitsUser(group.uid, at: now), !slot.isSlow || freeForSlowUsers > 0 else {
            return nil
        }
        return slot
    }

    mutating func began(_ slot: Slot) {
        count += 1
        if slot.isSlow { slowCount += 1 }
        ofUser[slot.group.uid, default: 0] += 1
        atHost[slot.group.host, default: 0] += 1
    }

    /// `duration` in milliseconds.
    mutating func ended(_ slot: Slot, _ outcome: DeliveryOutcome, after duration: Int64, at now: Int64) {
        count = max(0, count - 1)
        if slot.isSlow { slowCount = max(0, slowCount - 1) }
        AttemptSlots.decrement(&ofUser, slot.group.uid)
        AttemptSlots.decrement(&atHost, slot.group.host)
        slowUsers.attemptEnded(of: slot.group.uid, outcome, after: duration, at: now)
    }

    private static func decrement(_ counts: inout [String: Int], _ key: String) {
        let left = counts[key, default: 0] - 1
        counts[key] = left > 0 ? left : nil
    }
}
