import HatoModel
import HatoPush

/// Which attempts are under way, at which hosts and for which users, and whether one more may begin. Pure: its driver
/// says what time it is, in milliseconds.
///
/// An attempt at a receiver that does not respond holds its slot until the time limit. So that the receivers of one
/// user, or of one host, take no slots from the others, each user and each host holds a part of all slots at most. One
/// person may have many accounts; therefore there are two more rules:
///
/// - Attempts that run for longer than `slowAfter` are slow. At most `slowMax` of them are kept, half of all attempts
///   at most; beyond, `timePassed` ends some. So the other slots, the reserve, are free again after `slowAfter` at the
///   latest. The same holds for the slots of a host that has none free for new users; some of them are for users whose
///   receivers responded.
/// - The more attempts and silent hosts (`ReceiverHistory`) a user has, the more of the reserve must stay free when
///   another attempt of the user begins; still more if no receiver of the user has responded in time. The last slots
///   are for users that have neither attempts nor silent hosts, and had such a response.
struct AttemptSlots: Sendable {
    private struct Attempt {
        var number: Int
        var group: AttemptGroup
        var began: Int64
    }

    /// The number of equal parts of the reserve.
    private static let reserveParts = 8
    /// Parts that a user with a response in time leaves to others for each of its attempts and silent hosts.
    private static let partsOfKnown = 2
    /// The same for a user without a response in time, which leaves one more in any case. More, so that of many new
    /// users, whose receivers may all be silent, each soon has its first attempt.
    private static let partsOfUnknown = 4

    /// Where the search for groups of parked lanes goes on.
    struct Position: Sendable {
        /// The group that had its turn last; the next one goes on behind it.
        var turn: AttemptGroup?
        /// By host: the last of many groups that were skipped; the next turn of the host goes on behind it.
        private var lastSkipped: [String: AttemptGroup] = [:]
        private static let lastSkippedMax = 1_024

        /// Many groups of a host were skipped, this one last.
        mutating func skipped(from group: AttemptGroup) {
            if lastSkipped.count >= Self.lastSkippedMax { lastSkipped = [:] }
            lastSkipped[group.host] = group
        }

        /// The group behind which the host's turn goes on; once.
        mutating func takeLastSkipped(at host: String) -> AttemptGroup? { lastSkipped.removeValue(forKey: host) }
    }

    private let policy: DeliveryPolicy
    /// In the order in which they began.
    private var running: [Attempt] = []
    /// How many attempts are under way, by user and by host.
    private var ofUser: [String: Int] = [:]
    private var atHost: [String: Int] = [:]
    private var receivers: ReceiverHistory
    private var lastNumber = 0
    /// Where the next round goes on.
    var position = Position()

    init(_ policy: DeliveryPolicy) {
        self.policy = policy
        receivers = ReceiverHistory(
            silentFor: policy.silentFor.milliseconds, atFirst: policy.slowAfter.milliseconds)
    }

    var count: Int { running.count }
    /// The number of free slots.
    var free: Int { max(0, policy.attemptsInFlightMax - count) }
    /// How many may be slow.
    var slowMax: Int { min(policy.slowAttemptsMax, (policy.attemptsInFlightMax + 1) / 2) }

    func admitsHost(_ host: String) -> Bool { atHost[host, default: 0] < slotsMax(at: host) }

    /// How many attempts a host has at the same time.
    private func slotsMax(at host: String) -> Int {
        AttemptGroup.isPushService(host) ? policy.attemptsPerPushServiceMax : policy.attemptsPerHostMax
    }

    func admits(_ group: AttemptGroup) -> Bool {
        atHost[group.host, default: 0] < slotsAtHost(group) && ofUser[group.uid, default: 0] < policy.attemptsPerUserMax
            && free > slotsForOthers(beside: group)
    }

    /// The slots of its host that a user may fill: half of them when the host did not respond to it in time before, the
    /// last quarter only when a receiver did.
    private func slotsAtHost(_ group: AttemptGroup) -> Int {
        let max = slotsMax(at: group.host)
        if receivers.isShunned(group) { return slowMax(at: group.host) }
        return receivers.isPrompt(group.uid) ? max : max - max / 4
    }

    /// How many slots must stay free for other users when an attempt of this group begins.
    private func slotsForOthers(beside group: AttemptGroup) -> Int {
        let (reserve, uid) = (policy.attemptsInFlightMax - slowMax, group.uid)
        if receivers.isShunned(group) { return reserve }
        let load = ofUser[uid, default: 0] + receivers.silentHosts(of: uid)
        let parts = receivers.isPrompt(uid) ? load * Self.partsOfKnown : 1 + load * Self.partsOfUnknown
        return reserve * min(parts, Self.reserveParts) / Self.reserveParts
    }

    // MARK: Events

    /// Returns the number of the attempt.
    @discardableResult
    mutating func began(_ group: AttemptGroup, at now: Int64) -> Int {
        lastNumber += 1
        running.append(Attempt(number: lastNumber, group: group, began: now))
        ofUser[group.uid, default: 0] += 1
        atHost[group.host, default: 0] += 1
        return lastNumber
    }

    /// Without effect after `timePassed` has ended the attempt.
    mutating func ended(_ number: Int, _ outcome: DeliveryOutcome, at now: Int64) {
        guard let index = running.firstIndex(where: { $0.number == number }) else { return }
        let attempt = running.remove(at: index)
        release(attempt.group)
        let isSlow = now - attempt.began >= policy.slowAfter.milliseconds
        switch outcome {
        case .delivered where !isSlow: receivers.respondedInTime(attempt.group)
        // Also one that sends its response slowly.
        case .delivered, .failed: if isSlow { receivers.wasSilent(attempt.group, at: now) }
        // Says nothing about the receiver, or it gets no more attempts.
        case .postponed, .deviceGone, .tokenRefused, .rejected, .providerRefused: break
        }
    }

    /// Whether a host admits no users, or only those whose receivers responded.
    private func isCrowded(_ host: String) -> Bool {
        atHost[host, default: 0] >= slotsMax(at: host) - slotsMax(at: host) / 4
    }

    /// How many may be slow at a crowded host.
    private func slowMax(at host: String) -> Int { (slotsMax(at: host) + 1) / 2 }

    /// Ends slow attempts beyond `slowMax`, and those beyond the half of a crowded host, and returns their numbers:
    /// first those of the users that have the most slow attempts and silent hosts together, and of one user those that
    /// have run the longest.
    mutating func timePassed(at now: Int64) -> [Int] {
        receivers.forget(at: now)
        let slow = running.filter { $0.began <= now - policy.slowAfter.milliseconds }
        var excessCount = slow.count - slowMax
        var excessAt: [String: Int] = [:]
        for host in slow.map(\.group.host) where isCrowded(host) {
            excessAt[host] = excessAt[host, default: -slowMax(at: host)] + 1
        }
        guard excessCount > 0 || excessAt.contains(where: { $0.value > 0 }) else { return [] }
        var loads: [String: Int] = [:]
        for attempt in slow { loads[attempt.group.uid, default: 0] += 1 }
        let ranked = slow.map { attempt in
            let (uid, load) = (attempt.group.uid, loads[attempt.group.uid, default: 0])
            // As if they ended one after another, the longest running first.
            loads[uid] = load - 1
            return (load: load + receivers.silentHosts(of: uid), attempt: attempt)
        }.sorted { ($0.load, $1.attempt.number) > ($1.load, $0.attempt.number) }
        let excess = ranked.map(\.attempt).filter { attempt in
            let host = attempt.group.host
            guard excessCount > 0 || excessAt[host, default: 0] > 0 else { return false }
            excessCount -= 1
            excessAt[host, default: 0] -= 1
            return true
        }
        let numbers = Set(excess.map(\.number))
        running.removeAll { numbers.contains($0.number) }
        for attempt in excess {
            release(attempt.group)
            receivers.wasSilent(attempt.group, at: now)
        }
        return excess.map(\.number)
    }

    /// When `timePassed` is to be called: an attempt beyond `slowMax` becomes slow, or a silent host is forgotten. Nil:
    /// not before an attempt begins or ends.
    var nextChange: Int64? {
        let full = atHost.keys.filter(isCrowded)
        guard count >= slowMax || !full.isEmpty else { return nil }
        func excess(_ attempts: [Attempt], beyond max: Int) -> Int64? {
            attempts.map(\.began).sorted().dropFirst(max).first.map { $0 + policy.slowAfter.milliseconds }
        }
        let excesses =
            [excess(running, beyond: slowMax)]
            + full.map { host in excess(running.filter { $0.group.host == host }, beyond: slowMax(at: host)) }
        // Rounded up: four times a second at most, however many are forgotten.
        let forgetting = receivers.firstForgotten.map { ($0 / 250 + 1) * 250 }
        return (excesses + [count >= slowMax ? forgetting : nil]).compactMap { $0 }.min()
    }

    private mutating func release(_ group: AttemptGroup) {
        AttemptSlots.decrement(&ofUser, group.uid)
        AttemptSlots.decrement(&atHost, group.host)
    }

    private static func decrement(_ counts: inout [String: Int], _ key: String) {
        let left = counts[key, default: 0] - 1
        counts[key] = left > 0 ? left : nil
    }
}
