import HatoModel

/// How many attempts are under way, at which hosts and for which users, and whether one more may begin. Pure.
///
/// A receiver that hangs holds its attempt until the time limit. So that those of one user, or of one host, take
/// nothing from the others, each holds a part of all attempts at most.
struct AttemptSlots: Sendable {
    private let policy: DeliveryPolicy
    private(set) var count = 0
    private var ofUser: [String: Int] = [:]
    private var atHost: [String: Int] = [:]
    /// The group of lanes that had its turn last; the next one goes on behind it.
    var turn: AttemptGroup?

    init(_ policy: DeliveryPolicy) { self.policy = policy }

    /// How many more may begin in all.
    var free: Int { max(0, policy.attemptsInFlightMax - count) }

    func admitsHost(_ host: String) -> Bool { atHost[host, default: 0] < policy.attemptsPerHostMax }
    func admitsUser(_ uid: String) -> Bool { ofUser[uid, default: 0] < policy.attemptsPerUserMax }
    func admits(_ group: AttemptGroup) -> Bool { admitsHost(group.host) && admitsUser(group.uid) }

    mutating func began(_ group: AttemptGroup) {
        count += 1
        ofUser[group.uid, default: 0] += 1
        atHost[group.host, default: 0] += 1
    }

    mutating func ended(_ group: AttemptGroup) {
        count = max(0, count - 1)
        AttemptSlots.decrement(&ofUser, group.uid)
        AttemptSlots.decrement(&atHost, group.host)
    }

    private static func decrement(_ counts: inout [String: Int], _ key: String) {
        let left = counts[key, default: 0] - 1
        counts[key] = left > 0 ? left : nil
    }
}
