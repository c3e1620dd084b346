/// The authorisations that rest on the time, in the order in which they are evaluated in one round, and the time that
/// each client has had. A client gets a share of the time; those of its authorisations that do not fit come first in
/// the next round. Pure.
struct TimedRound {
    private var ids: [UInt64] = []
    private var next = 0
    private var spent: [String: Duration] = [:]
    private var postponed: [UInt64] = []

    var isOver: Bool { next == ids.count }

    /// - Parameter ids: all authorisations that rest on the time.
    mutating func begin(_ ids: [UInt64]) {
        let (known, waited) = (Set(ids), Set(postponed))
        self.ids = postponed.filter(known.contains) + ids.filter { !waited.contains($0) }
        (next, spent, postponed) = (0, [:], [])
    }

    mutating func takeFirst() -> UInt64? {
        guard next < ids.count else { return nil }
        defer { next += 1 }
        return ids[next]
    }

    /// Whether an authorisation of the client is evaluated in this round; otherwise it is one of the first in the next.
    mutating func admits(_ id: UInt64, of client: String, max: Duration) -> Bool {
        if spent[client, default: .zero] < max { return true }
        postponed.append(id)
        return false
    }

    /// The evaluation of one authorisation of the client took this time.
    mutating func evaluated(of client: String, in time: Duration) { spent[client, default: .zero] += time }
}
