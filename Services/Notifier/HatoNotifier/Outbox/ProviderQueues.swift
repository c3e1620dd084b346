import HatoModel
import HatoStorage

/// A provider queue that does not go on by itself: so many tokens were refused that had worked before that our
/// configuration must be wrong.
struct StoppedQueueRecord: FieldObject, Hashable {
    var since: Int64
    /// The words of the provider.
    var problem: String

    static let fields = Fields<Self>(
        blank: Self(since: 0, problem: ""),
        .required("since", \.since),
        .required("problem", \.problem))

    static func key(_ queue: ProviderQueue) -> RecordKey { RecordKey(.stopped).with(queue.name) }
}

/// What leasing found in a provider queue.
struct QueueRound: Sendable {
    var leases: [Lease] = []
    /// Whether there may be more that is due now.
    var isFull = false
    /// When the next lane is due; nil when none waits for a time, or when that was not asked for.
    var nextDueAt: Int64?
    /// Before this time, the queue has no lane but those that came since.
    var front: Int64 = 0
}

/// The provider queues of an outbox.
struct ProviderQueues: Sendable {
    private let outbox: Outbox
    /// Rows that `endExpired` looks at in one transaction.
    private static let sweptRowsMax = 512

    init(_ outbox: Outbox) { self.outbox = outbox }

    /// Leases up to `limit` deliveries of a provider queue that are due, the longest waiting first.
    func lease(
        from queue: ProviderQueue, limit: Int, _ search: QueueSearch = QueueSearch()
    ) async throws -> QueueRound {
        let now = outbox.time.now(), end = now + outbox.policy.lease.milliseconds
        var leased = try await outbox.change { draft in
            var round = QueueRound()
            let prefix = RecordKey(.queued).with(queue.name)
            // The clock may have been set back.
            let front = min(search.front, now)
            let rows = try draft.transaction.rows(
                prefix, after: prefix.with(time: front), before: prefix.with(time: now + 1), limit: limit)
            round.front = now
            if rows.count == limit, let last = rows.last { round.front = LaneRow(last.key)?.time ?? front }
            for row in rows {
                do {
                    guard let head = try LaneHead(row, &draft), let lease = try head.lease(until: end, &draft) else {
                        // It may stand where it stood.
                        round.front = min(round.front, LaneRow(row.key)?.time ?? front)
                        continue
                    }
                    round.leases.append(lease)
                } catch let error as UnreadableRecord {
                    try draft.setAside(head: row, because: error)
                }
            }
            round.isFull = rows.count == limit
            guard search.looksAhead else { return round }
            round.nextDueAt = try draft.transaction.rows(prefix, after: prefix.with(time: now + 1), limit: 1).first
                .flatMap { LaneRow($0.key)?.time }
            return round
        }
        leased.leases = ReplyTokens(outbox).add(to: leased.leases)
        return leased
    }

    /// Ends what has expired in a queue from which nothing is leased, after a row of it. Returns where to go on; nil at
    /// the end.
    func endExpired(in queue: ProviderQueue, after last: RecordKey?) async throws -> RecordKey? {
        let rowsMax = Self.sweptRowsMax
        return try await outbox.change { draft in
            let prefix = RecordKey(.queued).with(queue.name)
            let rows = try draft.transaction.rows(prefix, after: last, limit: rowsMax)
            for row in rows {
                // One that cannot be read is set aside when it is leased.
                guard
                    var delivery = try draft.transaction.readable(DeliveryRecord.self, RecordKey(bytes: row.value)),
                    delivery.dueKey == row.key, delivery.machine.state == .pending,
                    case .finish = delivery.machine.timePassed(at: draft.now)
                else { continue }
                try draft.finishHeads(from: delivery, dueKey: row.key) { $0.timePassed(at: $1) }
            }
            return rows.count == rowsMax ? rows.last?.key : nil
        }
    }

    /// The provider queues that have deliveries.
    func all() async throws -> [ProviderQueue] {
        try await outbox.store.read { try $0.queueNames().compactMap { ProviderQueue(name: $0) } }
    }

    /// The queues that are stopped, with the reason.
    func stopped() async throws -> [ProviderQueue: StoppedQueueRecord] {
        try await outbox.store.read { snapshot in
            var stopped: [ProviderQueue: StoppedQueueRecord] = [:]
            for row in try snapshot.rows(RecordKey(.stopped)) {
                var reader = RecordKeyReader(row.key.bytes)
                guard let queue = reader.text().flatMap({ ProviderQueue(name: $0) }) else { continue }
                stopped[queue] =
                    try snapshot.readable(StoppedQueueRecord.self, row.key)
                    ?? StoppedQueueRecord(since: 0, problem: "the record of why it stopped cannot be read")
            }
            return stopped
        }
    }

    /// Stops a queue until `resume`: meanwhile no attempt begins and no token of its devices is dropped.
    func stop(_ queue: ProviderQueue, problem: String) async throws {
        try await outbox.change { draft in
            let key = StoppedQueueRecord.key(queue)
            guard try !draft.transaction.contains(key) else { return }
            draft.writes.put(key, StoppedQueueRecord(since: draft.now, problem: problem))
        }
    }

    /// Lets a stopped queue go on.
    func resume(_ queue: ProviderQueue) async throws {
        try await outbox.change { $0.writes.delete(StoppedQueueRecord.key(queue)) }
    }
}

extension StoreReading {
    /// The names of the provider queues that have deliveries.
    func queueNames() throws -> [String] {
        var names: [String] = []
        var lower: [UInt8]? = RecordKey(.queued).bytes
        while let start = lower {
            var range = KeyRange(prefix: RecordKey(.queued).bytes)
            range.lower = start
            var name: String?
            try scan(range, reverse: false) { key, _ in
                var reader = RecordKeyReader(key.copied)
                name = reader.text()
                return .stop
            }
            if let name { names.append(name) }
            lower = name.flatMap { RecordKey(.queued).with($0).end }
        }
        return names
    }
}
