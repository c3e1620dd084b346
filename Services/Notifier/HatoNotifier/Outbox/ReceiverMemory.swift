/// Which hosts were silent for which users lately, and which users had a receiver that responded in time. Pure.
///
/// Only orders attempts while most places are taken. Users that are not known here count as new ones.
struct ReceiverMemory: Sendable {
    private struct Entry {
        var group: AttemptGroup
        var end: Int64
    }

    /// Beyond, the oldest are forgotten early.
    private static let silentMax = 16_384
    /// Twice as many are known at most: when there are as many newer ones, the older half goes.
    private static let promptMax = 8_192

    /// Milliseconds.
    private let silentFor: Int64
    /// Until when.
    private var silent: [AttemptGroup: Int64] = [:]
    private var silentHosts: [String: Int] = [:]
    /// In the order in which they are forgotten; a group that was silent again is there again.
    private var entries: ArraySlice<Entry> = []
    private var prompt: Set<String> = []
    private var formerlyPrompt: Set<String> = []

    init(silentFor: Int64) { self.silentFor = silentFor }

    func isSilent(_ group: AttemptGroup) -> Bool { silent[group] != nil }
    func silentHosts(of uid: String) -> Int { silentHosts[uid, default: 0] }
    func isPrompt(_ uid: String) -> Bool { prompt.contains(uid) || formerlyPrompt.contains(uid) }

    /// When the next one is forgotten.
    var firstForgotten: Int64? { entries.first?.end }

    mutating func respondedInTime(_ uid: String) {
        if prompt.count >= Self.promptMax { (prompt, formerlyPrompt) = ([], prompt) }
        prompt.insert(uid)
    }

    mutating func wasSilent(_ group: AttemptGroup, at now: Int64) {
        let end = now + silentFor
        if silent.updateValue(end, forKey: group) == nil { silentHosts[group.uid, default: 0] += 1 }
        entries.append(Entry(group: group, end: end))
        if entries.count > Self.silentMax { forgetFirst() }
    }

    /// Forgets what is older than it is kept; also all that is newer than now, when the clock was put back.
    mutating func forget(at now: Int64) {
        while let first = entries.first, first.end <= now || first.end - silentFor > now { forgetFirst() }
    }

    private mutating func forgetFirst() {
        let first = entries.removeFirst()
        guard silent[first.group] == first.end else { return }
        silent[first.group] = nil
        let left = silentHosts(of: first.group.uid) - 1
        silentHosts[first.group.uid] = left > 0 ? left : nil
    }
}
