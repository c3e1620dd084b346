import HatoModel
import HatoStorage

/// What one transaction does to the outbox: reads through the transaction, gathers the writes, and remembers what it
/// has already said about lanes, since a transaction does not see its own writes.
struct OutboxDraft {
    let transaction: any StoreTransaction
    let now: Int64
    /// What waits for each user, with what this draft adds and ends.
    let waiting: WaitingCounts
    /// How threads have e-mails.
    var mails: MailLanes
    var writes = RecordWrites()
    /// By how much the number of unfinished deliveries changes.
    private var pendingChange = 0
    /// By how much the number of dead ones changes.
    private var deadChange = 0
    /// When lanes may be attempted that could not be before.
    private var due = DueTimes()
    /// The same of each provider queue.
    private var dueInQueues: [String: DueTimes] = [:]
    /// Rows that could not be read, and were not known before.
    private var unreadable: [RecordKey] = []
    /// Of those known, how many are forgotten.
    private var forgottenUnreadable = 0
    private var lanes: [Lane: [DeliveryRecord]] = [:]
    /// Gives deliveries their turns; nil: this draft sends nothing.
    let pace: SendPace?
    /// What was read of users' preferences.
    var known = KnownPreferences()
    /// The notification that was read last.
    var notifications = LastNotification()
    /// Deliveries that were held back.
    private var held: [DeliveryStateMachine.Hold: Int] = [:]
    /// Where changes are handled that need not come in their order.
    var newest: NewestChanges?
    /// The deliveries that entered lanes, of each user in their order.
    private var entered: [UserDigest: ArraySlice<DeliveryRecord>] = [:]
    /// The rows of lanes that went.
    private var left: Set<RecordKey> = []
    /// The rows of `waiting` that went.
    private var leftWaiting: Set<RecordKey> = []
    /// The deliveries that became heads of lanes.
    private var heads: [Lane: RecordKey] = [:]
    private(set) var droppedBecauseFull = OutboxEffects.FullDrops()
    /// How many deliveries entered lanes.
    private(set) var enteredCount = 0
    private var sequenceIndex: UInt32 = 0

    /// The counts of threads, and the silent pushes of this transaction.
    var threads = ThreadCounts(threadsMax: NotifierLimits().threadsPerUserMax)

    /// The deliveries whose lanes moved: as the transaction reads them, they stand elsewhere.
    private var moved: Set<RecordKey> = []

    /// What needs the texts of notifications.
    var texts = TextUses()
    /// Jobs that begin and end.
    var fanOuts = FanOutChange()

    /// Rows after which a transaction ends no more heads, and drops no more than it adds.
    static let writesMax = 4_096
    /// What was dropped because too many wait is forgotten after one to two of it, in milliseconds.
    private static let keepBecauseFull: Int64 = 3_600_000

    init(
        _ transaction: any StoreTransaction, now: Int64, _ waiting: WaitingCounts, _ mails: MailLanes,
        _ pace: SendPace? = nil
    ) {
        self.transaction = transaction
        self.mails = mails
        self.now = now
        self.waiting = waiting
        self.pace = pace
    }

    var effects: OutboxEffects {
        OutboxEffects(
            pendingChange: pendingChange, deadChange: deadChange, events: writes.events, due: due,
            dueInQueues: dueInQueues, unreadable: unreadable, forgottenUnreadable: forgottenUnreadable,
            droppedBecauseFull: droppedBecauseFull, held: held, hasWithdrawals: threads.hasJobs,
            fanOuts: fanOuts)
    }

    // MARK: Lanes

    /// Puts a pending delivery at the end of its lane; under a collapse key it takes the place of what was not sent
    /// yet. One of a change that is older than what the lane had is replaced at once.
    mutating func enqueue(_ delivery: DeliveryRecord, from change: ChangePosition? = nil) throws {
        var delivery = delivery
        if let change, delivery.digest == nil,
            try newest?.accept(change, in: delivery.lane, transaction, &writes) == false
        {
            _ = delivery.machine.replaced(at: now)
            writes.put(delivery.key, delivery)
            if let event = OutboxEvent(finished: delivery) { writes.record(event) }
            return
        }
        delivery.sequenceVersion = transaction.nextVersion
        delivery.sequenceIndex = sequenceIndex
        sequenceIndex += 1
        // What waits for a user stands in its lanes.
        let owner = delivery.owner
        var present = waiting.count(of: owner) == 0 ? [] : try lane(delivery.lane)
        if delivery.replaces {
            for (index, former) in present.enumerated() where former.machine.state == .pending {
                let isHead = index == 0
                // A receiver that fails is not called sooner because there is more to say.
                if isHead, former.machine.attempts > 0 {
                    delivery.machine = DeliveryStateMachine(
                        dueAt: former.machine.time, expiresAt: delivery.machine.expiresAt)
                }
                var replaced = former
                delivery = delivery.takingPlace(of: &replaced)
                if isHead { writes.delete(former.dueKey) }
                _ = replaced.machine.replaced(at: now)
                leaveLane(replaced)
            }
            present.removeAll { $0.machine.state == .pending }
        }
        if present.isEmpty { becomeHead(delivery) }
        // Of a lane without a collapse key it only matters whether something is there.
        if delivery.replaces || present.isEmpty { present.append(delivery) }
        lanes[delivery.lane] = present
        writes.put(delivery.key, delivery)
        writes.put(delivery.laneKey, bytes: delivery.key.bytes)
        writes.put(delivery.waitingKey(of: owner), bytes: delivery.laneKey.bytes)
        if let key = delivery.threadKey { writes.put(key, bytes: delivery.key.bytes) }
        waiting.add(1, to: owner)
        entered[owner, default: []].append(delivery)
        enteredCount += 1
        pendingChange += 1
        texts.add(1, to: delivery.notification)
    }

    private mutating func hasDue(_ delivery: DeliveryRecord) {
        guard let queue = delivery.queue else { return due.add(delivery.machine.time, at: now) }
        dueInQueues[queue, default: DueTimes()].add(delivery.machine.time, at: now)
    }

    /// What waits in a lane, as far as it matters: under a collapse key all of it, which is little; else whether there
    /// is something.
    private mutating func lane(_ lane: Lane) throws -> [DeliveryRecord] {
        if let known = lanes[lane] { return known }
        guard lane.collapseKey == nil || lane.isDigest else {
            return try readableRows(of: lane).filter { !left.contains($0.laneKey) }
        }
        var last: RecordKey?
        while let row = try transaction.rows(lane.prefix, after: last, limit: 1).first {
            if !left.contains(row.key) { return [DeliveryRecord.fields.blank] }
            last = row.key
        }
        return []
    }

    /// The head of a lane has ended: the next one becomes due. `dueKey` is where the lane stood. Returns the next one
    /// if it can be read.
    @discardableResult
    mutating func finishHead(_ delivery: DeliveryRecord, dueKey: RecordKey) throws -> DeliveryRecord? {
        writes.delete(dueKey)
        writes.delete(delivery.leasedKey)
        let owner = leaveLane(delivery)
        if waiting.count(of: owner) == 0 { return nil }
        var last = delivery.laneKey
        while let row = try transaction.rows(delivery.lane.prefix, after: last, limit: 1).first {
            last = row.key
            if left.contains(row.key) { continue }
            return try becomeHead(RecordKey(bytes: row.value), of: delivery.lane.prefix)
        }
        let next = entered[owner]?.first { $0.lane == delivery.lane && !left.contains($0.laneKey) }
        if let next { becomeHead(next) }
        return next
    }

    /// The head of a lane has ended; those behind it end with it, one after the other, as long as `ends` ends them and
    /// one transaction takes more. The next one becomes due.
    mutating func finishHeads(
        from head: DeliveryRecord, dueKey: RecordKey,
        _ ends: (inout DeliveryStateMachine, _ now: Int64) -> DeliveryStateMachine.Action
    ) throws {
        var (head, dueKey) = (head, dueKey)
        while let next = try finishHead(head, dueKey: dueKey), writes.count < Self.writesMax {
            var ending = next
            guard case .finish = ends(&ending.machine, now) else { return }
            (head, dueKey) = (ending, next.dueKey)
        }
    }

    /// Makes a delivery due as the head of its lane; returns it if it can be read.
    @discardableResult
    mutating func becomeHead(_ key: RecordKey, of lane: RecordKey) throws -> DeliveryRecord? {
        if let delivery = try transaction.readable(DeliveryRecord.self, key) {
            becomeHead(delivery)
            return delivery
        }
        // It is set aside in its turn.
        writes.put(RecordKey(.due).with(time: now).with(lane.tail), bytes: key.bytes)
        due.add(now, at: now)
        return nil
    }

    private mutating func becomeHead(_ delivery: DeliveryRecord) {
        writes.put(delivery.dueKey, bytes: delivery.key.bytes)
        heads[delivery.lane] = delivery.key
        hasDue(delivery)
    }

    /// Drops a delivery that waits, because too many do. Its notification is forgotten soon: what cannot wait must not
    /// fill the disk instead.
    mutating func dropBecauseFull(_ delivery: DeliveryRecord, _ policy: DeliveryPolicy) throws {
        guard try end(delivery, { $0.outboxWasFull(at: $1) }) else { return }
        droppedBecauseFull = OutboxEffects.FullDrops(count: droppedBecauseFull.count + 1, uid: delivery.uid)
        forgetSoon(delivery.notification, policy)
    }

    /// Drops a delivery that waits or is dead, because its notification is withdrawn; one that is being attempted is
    /// dropped if the attempt fails. Returns whether it was dropped.
    mutating func withdraw(_ delivery: DeliveryRecord) throws -> Bool {
        try end(delivery) { $0.withdrawn(at: $1) }
    }

    /// How a delivery ends.
    typealias Ending = @Sendable (inout DeliveryStateMachine, _ now: Int64) -> DeliveryStateMachine.Action

    /// Ends a delivery that waits, wherever in its lane, or is dead; or writes what `ends` makes of it otherwise.
    /// Returns whether it ended.
    mutating func end(_ delivery: DeliveryRecord, _ ends: Ending) throws -> Bool {
        var ended = delivery
        guard case .finish = ends(&ended.machine, now) else {
            if ended.machine != delivery.machine { writes.put(delivery.key, ended) }
            return false
        }
        if delivery.machine.state == .dead {
            dropDead(delivery, as: ended)
            return true
        }
        try leaveLane(ended, from: delivery.dueKey)
        return true
    }

    /// A delivery that waited has ended, wherever it stands in its lane. `dueKey` is where the lane stands if it is the
    /// head.
    mutating func leaveLane(_ ended: DeliveryRecord, from dueKey: RecordKey) throws {
        let head = try heads[ended.lane]?.bytes ?? transaction.value(dueKey)
        if head == ended.key.bytes { try finishHead(ended, dueKey: dueKey) } else { leaveLane(ended) }
    }

    /// Whether a delivery that waits is the head of its lane.
    func isHead(_ delivery: DeliveryRecord, at dueKey: RecordKey) throws -> Bool {
        try (heads[delivery.lane]?.bytes ?? transaction.value(dueKey)) == delivery.key.bytes
    }

    /// The head of a lane is held back. `dueKey` is where the lane stood.
    mutating func holds(_ delivery: DeliveryRecord, from dueKey: RecordKey) {
        if let hold = delivery.machine.hold { held[hold, default: 0] += 1 }
        moveHead(delivery, dueKey: dueKey)
    }

    /// Forgets a notification in an hour or two, if its deliveries have ended then.
    mutating func forgetSoon(_ notification: String, _ policy: DeliveryPolicy) {
        // At few times, so that a notification to many devices is looked at few times.
        let end = (now / Self.keepBecauseFull + 2) * Self.keepBecauseFull
        writes.put(NotificationRecord.purgeKey(notification, at: end - policy.keepFinished.milliseconds))
    }

    /// Takes the first of the deliveries that entered lanes of a user and have not left them.
    mutating func takeFirstEntered(of user: UserDigest) -> DeliveryRecord? {
        while let first = entered[user]?.popFirst() {
            if !left.contains(first.laneKey) { return first }
        }
        return nil
    }

    func hasLeft(_ laneKey: RecordKey) -> Bool { left.contains(laneKey) }
    func hasMoved(_ delivery: RecordKey) -> Bool { moved.contains(delivery) }

    /// Returns whose delivery it was.
    @discardableResult
    private mutating func leaveLane(_ delivery: DeliveryRecord) -> UserDigest {
        var delivery = delivery
        let owner = delivery.owner
        delivery.parkedAt = nil
        writes.put(delivery.key, delivery)
        writes.delete(delivery.laneKey)
        left.insert(delivery.laneKey)
        leaveWaiting(delivery.waitingKey(of: owner), of: owner)
        if let key = delivery.threadKey { writes.delete(key) }
        if let pacing = delivery.pacing { pace?.giveBack(pacing, at: delivery.device, of: delivery.uid, now: now) }
        if delivery.machine.state == .dead {
            writes.put(delivery.deadKey, bytes: delivery.key.bytes)
            deadChange += 1
        } else {
            texts.add(-1, to: delivery.notification)
        }
        if let event = OutboxEvent(finished: delivery) { writes.record(event) }
        pendingChange -= 1
        return owner
    }

    // MARK: Unreadable rows

    /// Remembers the row; the first time, it is counted and logged.
    mutating func setAside(_ key: RecordKey) throws {
        let known = RecordKey(.unreadable).with(key.bytes[...])
        guard try !transaction.contains(known), !unreadable.contains(key) else { return }
        writes.put(known)
        unreadable.append(key)
    }

    /// Whether a row could not be read, as far as was known before this transaction.
    func isSetAside(_ key: RecordKey) throws -> Bool {
        try transaction.contains(RecordKey(.unreadable).with(key.bytes[...]))
    }

    /// Forgets a row that was set aside, since it goes.
    mutating func forgetSetAside(_ key: RecordKey) throws {
        let known = RecordKey(.unreadable).with(key.bytes[...])
        guard try transaction.contains(known) else { return }
        writes.delete(known)
        forgottenUnreadable += 1
    }

    mutating func leaveLane(unreadable laneKey: RecordKey, of delivery: RecordKey) throws {
        guard left.insert(laneKey).inserted else { return }
        writes.delete(laneKey)
        pendingChange -= 1
        var parts = RecordKeyReader(delivery.bytes)
        if let notification = parts.text() { texts.add(-1, to: notification) }
        // Whose delivery it was is known by its device; without one, the row in `waiting` goes when it is met.
        var reader = RecordKeyReader(laneKey.bytes)
        guard let device = reader.text(),
            let owner = try transaction.readable(DeviceRecord.self, DeviceRecord.key(device))?.owner
        else { return }
        let row = RecordKey(.waiting).with(owner.value).with(laneKey.bytes.suffix(DeliveryRecord.sequenceBytes))
        if try transaction.contains(row) { leaveWaiting(row, of: owner) }
    }

    /// Once in a draft: a row may be met again, since the transaction does not see that it goes.
    mutating func leaveWaiting(_ row: RecordKey, of user: UserDigest) {
        guard leftWaiting.insert(row).inserted else { return }
        writes.delete(row)
        waiting.add(-1, to: user)
    }

    /// A dead delivery is dropped.
    mutating func dropDead(_ delivery: DeliveryRecord, as dropped: DeliveryRecord) {
        leaveDead(delivery)
        writes.put(dropped.key, dropped)
        if let event = OutboxEvent(finished: dropped) { writes.record(event) }
    }

    /// Takes a dead delivery out of the table of the dead.
    mutating func leaveDead(_ delivery: DeliveryRecord) {
        writes.delete(delivery.deadKey)
        deadChange -= 1
        texts.add(-1, to: delivery.notification)
    }

    /// The head of a lane goes on: leased, or due at another time. `dueKey` is where the lane stood.
    mutating func moveHead(_ delivery: DeliveryRecord, dueKey: RecordKey) {
        move(delivery, to: nil, from: dueKey)
        if delivery.machine.state == .leased {
            writes.put(delivery.leasedKey)
            // It goes by itself from now on.
            if let key = delivery.threadKey { writes.delete(key) }
        } else {
            writes.delete(delivery.leasedKey)
            hasDue(delivery)
        }
    }

    /// A delivery that waits behind the head of its lane is another one now: this transaction reads the former one.
    mutating func replaceBehindHead(_ delivery: DeliveryRecord) {
        moved.insert(delivery.key)
        writes.put(delivery.key, delivery)
    }

    /// The lane of a delivery stands elsewhere: in `due`, or parked at a host. `dueKey` is where it stood.
    mutating func move(_ delivery: DeliveryRecord, to host: String?, from dueKey: RecordKey) {
        var delivery = delivery
        delivery.parkedAt = host
        moved.insert(delivery.key)
        writes.delete(dueKey)
        writes.put(delivery.key, delivery)
        writes.put(delivery.dueKey, bytes: delivery.key.bytes)
    }
}

extension StoreReading {
    func devices(of uid: String) throws -> [DeviceRecord] {
        try deviceKeys(of: uid).compactMap { try readable(DeviceRecord.self, $0) }
    }

    /// A row whose key cannot be read leads to no device.
    func deviceKeys(of uid: String) throws -> [RecordKey] {
        let prefix = RecordKey(.deviceOfUser).with(uid)
        return try rows(prefix).compactMap { row in
            var reader = RecordKeyReader(row.key.bytes)
            return reader.text().flatMap { _ in reader.text() }.map { DeviceRecord.key($0) }
        }
    }
}
