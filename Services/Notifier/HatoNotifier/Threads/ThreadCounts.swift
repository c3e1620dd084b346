import HatoModel
import HatoStorage

/// What one transaction does to the counts of threads, and which silent pushes come of it: it does not see its own
/// writes.
struct ThreadCounts {
    private let threadsMax: Int
    private var badges: [String: BadgeRecord] = [:]
    private var counts: [RecordKey: ThreadRecord?] = [:]
    private var origins: [RecordKey: OriginRecord] = [:]
    /// The withdrawals that it began.
    private var begun: [RecordKey: WithdrawalRecord] = [:]
    /// The silent pushes that it sends at its end.
    private var pushes: [Receiver: Push] = [:]
    /// Whether it began or went on with a withdrawal.
    private(set) var hasJobs = false

    init(threadsMax: Int) { self.threadsMax = threadsMax }

    /// The receiver of a silent push: a user's devices, or a token without a user.
    enum Receiver: Hashable, Sendable {
        case user(String)
        case token(device: String)
    }

    /// A silent push, as far as it is known.
    struct Push: Sendable {
        var content = WithdrawalContent.fields.blank
        /// Whether all devices of the user get it; else `devices`.
        private(set) var isForAll = false
        private(set) var devices: Set<String> = []

        /// A notification that these devices may show.
        mutating func add(_ notification: String, at devices: Set<String>) {
            if !devices.isEmpty, !content.ids.contains(notification) { content.ids.append(notification) }
            self.devices.formUnion(devices)
        }

        /// A thread of which nothing is to be shown.
        mutating func clear(_ thread: String) {
            if !content.threads.contains(thread) { content.threads.append(thread) }
        }

        /// A count has fallen: all devices of the user get the badge.
        mutating func concernsAll() { (isForAll, content.hasBadge) = (true, true) }
    }

    // MARK: Counts

    /// A user's badge; nil when nothing is counted.
    mutating func badge(of uid: String, _ reading: any StoreTransaction) throws -> BadgeRecord? {
        try badges[uid] ?? reading.readable(BadgeRecord.self, BadgeRecord.key(uid))
    }

    mutating func count(of place: UserThread, _ reading: any StoreTransaction) throws -> Int {
        try thread(place, reading)?.shown ?? 0
    }

    private func thread(_ place: UserThread, _ reading: any StoreTransaction) throws -> ThreadRecord? {
        let key = ThreadRecord.key(place)
        if let known = counts[key] { return known }
        return try reading.readable(ThreadRecord.self, key)
    }

    /// Adds to a count; it stays within 0 to 99,999. Returns whether it fell.
    mutating func add(
        _ change: Int, to place: UserThread, _ reading: any StoreTransaction, _ writes: inout RecordWrites
    ) throws -> Bool {
        try set(count(of: place, reading) + change, of: place, reading, &writes)
    }

    /// Sets a count, within 0 to 99,999. Returns whether it fell.
    mutating func set(
        _ number: Int, of place: UserThread, _ reading: any StoreTransaction, _ writes: inout RecordWrites
    ) throws -> Bool {
        let former = try thread(place, reading)
        let (count, before) = (min(max(0, number), BadgeRecord.shownMax), former?.shown ?? 0)
        guard count != before || former == nil && count > 0 else { return false }
        let known = try badge(of: place.uid, reading)
        // The tree may go on counting for a user that is gone.
        if known == nil, try GoneUsers.isGone(place.uid, in: reading) { return false }
        var badge = known ?? BadgeRecord(total: 0, threads: 0)
        badge.total = max(0, min(badge.total, Self.totalMax) - before + count)
        badge.threads = max(0, min(badge.threads, Self.totalMax) + (count > 0 ? 1 : 0) - (former == nil ? 0 : 1))
        let key = ThreadRecord.key(place)
        if count > 0 {
            let record = ThreadRecord(count: count, changed: reading.nextVersion)
            counts[key] = .some(record)
            writes.put(key, record)
        } else {
            counts[key] = .some(nil)
            writes.delete(key)
        }
        if badge.threads > threadsMax { badge = try dropOldest(of: place, reading, &writes) }
        put(badge, of: place.uid, &writes)
        return count < before
    }

    private static let totalMax = 1 << 40

    private mutating func put(_ badge: BadgeRecord, of uid: String, _ writes: inout RecordWrites) {
        badges[uid] = badge
        if badge.threads > 0 { writes.put(BadgeRecord.key(uid), badge) } else { writes.delete(BadgeRecord.key(uid)) }
    }

    /// Drops the counts that have not changed for the longest time, beyond the limit, besides that of `place`. Returns
    /// the badge, of what is there.
    private mutating func dropOldest(
        of place: UserThread, _ reading: any StoreTransaction, _ writes: inout RecordWrites
    ) throws -> BadgeRecord {
        let prefix = ThreadRecord.prefix(place.uid)
        var threads: [RecordKey: ThreadRecord] = [:]
        for row in try reading.rows(prefix) {
            threads[row.key] = try? RecordCodec.decode(ThreadRecord.self, row.value, key: row.key.bytes)
        }
        for (key, record) in counts where key.bytes.starts(with: prefix.bytes) { threads[key] = record }
        let oldest = threads.filter { $0.key != ThreadRecord.key(place) }
            .sorted { $0.value.changed < $1.value.changed }
        // An eighth at a time, so that few transactions look at all.
        for (key, _) in oldest.prefix(max(0, threads.count - threadsMax + threadsMax / 8)) {
            threads[key] = nil
            counts[key] = .some(nil)
            writes.delete(key)
        }
        return BadgeRecord(total: threads.values.reduce(0) { $0 + $1.shown }, threads: threads.count)
    }

    /// Sets the counts of all threads of a user to 0. Returns whether one fell.
    mutating func clear(_ uid: String, _ reading: any StoreTransaction, _ writes: inout RecordWrites) throws -> Bool {
        var hasFallen = false
        for row in try reading.rows(ThreadRecord.prefix(uid)) {
            hasFallen = true
            counts[row.key] = .some(nil)
            writes.delete(row.key)
        }
        put(BadgeRecord(total: 0, threads: 0), of: uid, &writes)
        return hasFallen
    }

    // MARK: Origins

    func origin(_ key: RecordKey, _ reading: any StoreReading) throws -> OriginRecord? {
        try origins[key] ?? reading.readable(OriginRecord.self, key)
    }

    mutating func put(_ origin: OriginRecord, at key: RecordKey, _ writes: inout RecordWrites) {
        origins[key] = origin
        if origin == OriginRecord.fields.blank { writes.delete(key) } else { writes.put(key, origin) }
    }

    // MARK: Silent pushes

    /// Sends a silent push to the devices of a receiver at the end of the transaction.
    mutating func push(to receiver: Receiver, _ change: (inout Push) -> Void) {
        change(&pushes[receiver, default: Push()])
    }

    /// Whether it sends silent pushes.
    var hasPushes: Bool { !pushes.isEmpty }

    mutating func takePushes() -> [Receiver: Push] {
        defer { pushes = [:] }
        return pushes
    }

    // MARK: Withdrawals

    /// Begins a withdrawal, or makes one that is under way withdraw this as well.
    mutating func begin(
        _ job: WithdrawalJob, _ record: WithdrawalRecord, _ reading: any StoreTransaction,
        _ writes: inout RecordWrites
    ) throws {
        var record = record
        // A count that falls later says nothing more about what was read.
        if !record.isRead, let former = try begun[job.key] ?? reading.readable(WithdrawalRecord.self, job.key),
            former.isRead
        {
            record = former
        }
        begun[job.key] = record
        writes.put(job.key, record)
        hasJobs = true
    }
}

extension NewNotification {
    /// Where its path leads to it; nil when its deletion withdraws nothing.
    var originKey: RecordKey? {
        guard isWithdrawable, let trigger, let path else { return nil }
        return OriginRecord.key(trigger, path)
    }
}
