import HatoRPC

/// What the live listeners of a topic were sent lately: kept while others catch up, so that they end where the live
/// ones are instead of chasing them. Pure.
struct RecentEvents: Hashable {
    /// Leads a listener that has everything up to `after` to `version`.
    struct Sent: Hashable {
        var after: UInt64
        var version: UInt64
        var members: EncodedJSON
    }

    /// The version of the last commit that touched the topic since the publisher knows it.
    private(set) var lastChanged: UInt64
    /// The same of those whose events the live ones were sent.
    private(set) var lastSent: UInt64
    /// Catch-up jobs under way.
    private var jobs = 0
    private var kept: [Sent] = []
    private var keptBytes = 0
    /// False when `kept` could not hold everything since the oldest job under way began.
    private var isWhole = true

    /// More than that to keep means that reading anew is cheaper.
    private static let bytesMax = 1 << 20

    init(version: UInt64) {
        lastChanged = version
        lastSent = version
    }

    var isNeeded: Bool { jobs > 0 }

    mutating func changed(at version: UInt64) { lastChanged = version }

    /// The live ones were sent the events of all commits up to one.
    mutating func sent(through version: UInt64) { lastSent = max(lastSent, min(version, lastChanged)) }

    mutating func jobBegan() { jobs += 1 }

    mutating func jobEnded() {
        jobs -= 1
        guard jobs == 0 else { return }
        kept = []
        keptBytes = 0
        isWhole = true
    }

    mutating func keep(_ sent: Sent) {
        guard isNeeded, isWhole else { return }
        keptBytes += sent.members.count
        kept.append(sent)
        if keptBytes > Self.bytesMax {
            kept = []
            isWhole = false
        }
    }

    /// What leads from `version` to where the live ones are; nil when that is not kept. Asked before `jobEnded`.
    func sent(after version: UInt64) -> [EncodedJSON]? {
        if lastSent <= version { return [] }
        guard isWhole else { return nil }
        // What changed since could not be seen.
        guard let start = kept.firstIndex(where: { $0.version > version }) else { return [] }
        // One that begins before `version` would miss what came and went in between.
        return kept[start].after >= version ? kept[start...].map(\.members) : nil
    }
}
