import HatoRPC

/// Which hosts are silent for which users, and which users had a receiver that responded in time. Pure.
///
/// A host is silent for a user for some seconds after an attempt there failed, or was ended, when it was slow. It is
/// shunned for as long; where it had responded in time before, for a shorter time at first and longer for each further
/// slow attempt, so that a receiver that is slow once waits little. Users that are not known here count as new ones.
struct ReceiverHistory: Sendable {
    /// Hosts that are silent at a time; beyond, the oldest are forgotten early.
    private static let silentMax = 16_384
    /// How a slow attempt and a response in time change the level of a host: one that takes turns with them is shunned
    /// for longer and longer, too.
    private static let (slowStep, promptStep) = (2, 1)
    private static let levelMax = 40

    /// Milliseconds that a host is shunned at first.
    private let first: Int64
    /// Milliseconds.
    private let silentFor: Int64
    /// Until when a host is silent for a user, and until when it is shunned.
    private var silent = IndexedHeap<AttemptGroup, Int64>()
    private var shunned = IndexedHeap<AttemptGroup, Int64>()
    /// How many silent hosts each user has.
    private var silentHosts: [String: Int] = [:]
    /// Of hosts that responded in time.
    private var levels = RecentValues<AttemptGroup, Int>()
    /// Users with a response in time.
    private var prompt = RecentValues<String, Void>()
    private var newest = Int64.min

    init(silentFor: Int64, atFirst first: Int64) { (self.silentFor, self.first) = (silentFor, min(first, silentFor)) }

    func isShunned(_ group: AttemptGroup) -> Bool { shunned.contains(group) }
    func silentHosts(of uid: String) -> Int { silentHosts[uid, default: 0] }
    func isPrompt(_ uid: String) -> Bool { prompt[uid] != nil }

    /// When the next one is forgotten.
    var firstForgotten: Int64? { [silent.first, shunned.first].compactMap { $0?.priority }.min() }

    mutating func respondedInTime(_ group: AttemptGroup) {
        prompt[group.uid] = ()
        levels[group] = max(0, (levels[group] ?? 0) - Self.promptStep)
    }

    mutating func wasSilent(_ group: AttemptGroup, at now: Int64) {
        if !silent.contains(group) { silentHosts[group.uid, default: 0] += 1 }
        silent.insert(group, now + silentFor)
        shunned.insert(group, max(now + shunning(group), shunned.priority(of: group) ?? .min))
        if silent.count > Self.silentMax { forgetFirst() }
    }

    /// How long a host is shunned after one more slow attempt.
    private mutating func shunning(_ group: AttemptGroup) -> Int64 {
        guard let former = levels[group] else { return silentFor }
        let level = min(Self.levelMax, former + Self.slowStep)
        levels[group] = level
        let doubled = first.multipliedReportingOverflow(by: 1 << Int64(level / Self.slowStep - 1))
        return min(silentFor, doubled.overflow ? silentFor : doubled.partialValue)
    }

    /// Forgets what has been kept for its time; all of it when the clock was put back by more than the shortest time
    /// for which a host is shunned: as much later something may be forgotten.
    mutating func forget(at now: Int64) {
        let back = newest.subtractingReportingOverflow(now)
        let isPutBack = now < newest && (back.overflow || back.partialValue > first)
        newest = isPutBack ? now : max(newest, now)
        while let first = silent.first, first.priority <= now || isPutBack { forgetFirst() }
        while let first = shunned.first, first.priority <= now { shunned.remove(first.key) }
    }

    private mutating func forgetFirst() {
        guard let group = silent.first?.key else { return }
        silent.remove(group)
        shunned.remove(group)
        let left = silentHosts(of: group.uid) - 1
        silentHosts[group.uid] = left > 0 ? left : nil
    }
}
