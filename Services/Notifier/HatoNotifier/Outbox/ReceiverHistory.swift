/// Which hosts are silent for which users, and which users had a receiver that responded in time. Pure.
///
/// A host is silent for a user for some seconds after an attempt there failed, or was ended, when it was slow. Users
/// that are not known here count as new ones.
struct ReceiverHistory: Sendable {
    private struct Entry {
        var group: AttemptGroup
        /// When it is forgotten.
        var end: Int64
    }

    /// Of `entries`; beyond, the oldest are forgotten early.
    private static let silentMax = 16_384
    /// Of `prompt`, and of `formerlyPrompt`: at so many, the newer half becomes the older half, which is forgotten.
    private static let promptMax = 8_192

    /// Milliseconds.
    private let silentFor: Int64
    /// Until when a host is silent for a user.
    private var silent: [AttemptGroup: Int64] = [:]
    /// How many of them each user has.
    private var silentHosts: [String: Int] = [:]
    /// In the order in which they are forgotten; a group that was silent again has a second entry.
    private var entries: ArraySlice<Entry> = []
    /// Users with a response in time: the newer half, and the older one.
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

    /// Forgets what has been kept for `silentFor`; when the clock was put back, also what is newer than now.
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
