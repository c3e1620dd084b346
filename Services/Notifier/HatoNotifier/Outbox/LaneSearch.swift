/// When lanes may be attempted that could not be before.
struct DueTimes: Sendable, Hashable {
    /// The earliest of all; `max`: there is none.
    private(set) var first = Int64.max
    /// The earliest of those that were still to come; `max`: there is none.
    private(set) var firstLater = Int64.max

    var isEmpty: Bool { first == .max }

    mutating func add(_ time: Int64, at now: Int64) {
        first = min(first, time)
        if time > now { firstLater = min(firstLater, time) }
    }

    mutating func formUnion(_ other: Self) {
        first = min(first, other.first)
        firstLater = min(firstLater, other.firstLater)
    }
}

/// What one round of leasing looks at.
struct QueueSearch: Sendable, Hashable {
    /// There is no lane before this time.
    var front: Int64 = 0
    /// Whether it matters when the next lane is due.
    var looksAhead = true
    /// Whether lanes may be parked.
    var looksForParked = true
}

/// Where rounds of leasing begin, and when the next one is to follow. Pure; times in milliseconds since 1970.
///
/// Rows that went make a search slow until the store has forgotten them, and each attempt leaves two: one at the time
/// when its lane was due, and one at the end of its lease. So a round begins where there may be lanes, and what is due
/// later is looked for only when the earliest time that is known has passed.
struct LaneSearch: Sendable {
    /// Before this time, there was no lane when the last round ended.
    private var front: Int64 = 0
    /// When something may be due that is not yet; `max`: never. It is not known at first.
    private var next: Int64 = 0
    private var mayBeParked = true
    /// When the last round began.
    private var last: Int64 = 0
    private var present = QueueSearch()

    /// When the next round is to follow; nil: when something comes.
    var nextRoundAt: Int64? { next == .max ? nil : next }

    /// A round begins, with the lanes that came since the last one began. When the clock was set back, what was due
    /// then may be due later now.
    mutating func begin(_ came: DueTimes, at now: Int64, looksAhead: Bool = false) -> QueueSearch {
        front = min(front, came.first, now)
        next = min(next, came.firstLater)
        let mustLook = looksAhead || next <= now || now < last
        last = now
        present = QueueSearch(front: front, looksAhead: mustLook, looksForParked: mayBeParked)
        return present
    }

    /// The round has ended. Without this, the next one begins where it did. `leasedUntil`: when the leases end that it
    /// gave; an attempt that does not end leaves its lane there.
    mutating func ended(_ found: Found, leasedUntil: Int64?) {
        front = found.front
        next = min(present.looksAhead ? .max : next, found.nextDueAt ?? .max, leasedUntil ?? .max)
        mayBeParked = found.hasParked
    }

    /// What a round says about the next one.
    struct Found {
        var front: Int64
        var nextDueAt: Int64?
        var hasParked = false
    }
}
