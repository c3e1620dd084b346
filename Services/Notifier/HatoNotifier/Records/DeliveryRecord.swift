import HatoModel
import HatoPush

/// One notification on its way to one device.
struct DeliveryRecord: FieldObject {
    var notification: String
    var index: UInt32
    var device: String
    var uid: String
    var collapseKey: String?
    /// Its place in its lane: the commit that accepted it, and its number there.
    var sequenceVersion: UInt64
    var sequenceIndex: UInt32
    var createdAt: Int64
    var machine: DeliveryStateMachine
    /// The host of its device, while its lane is parked there; nil: the lane stands in `due`.
    var parkedAt: String?
    /// The name of the `ProviderQueue` of its device, where its lane stands; nil: it stands in `due` or is parked.
    var queue: String?
    /// Of an e-mail: the thread that it gathers, empty for what has none.
    var digest: String?
    /// What decides, beside its times, when it may go; nil: nothing.
    var pacing: Pacing?

    static let fields = Fields<Self>(
        blank: Self(
            notification: "", index: 0, device: "", uid: "", sequenceVersion: 0, sequenceIndex: 0, createdAt: 0,
            machine: DeliveryStateMachine.fields.blank),
        .required("notification", \.notification),
        .required("index", \.index),
        .required("device", \.device),
        .required("uid", \.uid),
        .optional("collapseKey", \.collapseKey),
        .required("sequenceVersion", \.sequenceVersion),
        .required("sequenceIndex", \.sequenceIndex),
        .required("createdAt", \.createdAt),
        .required("machine", \.machine),
        .optional("parkedAt", \.parkedAt),
        .optional("queue", \.queue),
        .optional("digest", \.digest),
        .optional("pacing", \.pacing))

    var id: String { "\(notification)-\(index)" }

    /// The key of the delivery with this id; nil when it is no such id.
    static func key(id: String) -> RecordKey? {
        guard let dash = id.lastIndex(of: "-"), let index = UInt32(id[id.index(after: dash)...]) else { return nil }
        return key(String(id[..<dash]), index)
    }

    static func key(_ notification: String, _ index: UInt32) -> RecordKey {
        RecordKey(.delivery).with(notification).with(index)
    }

    static func prefix(_ notification: String) -> RecordKey { RecordKey(.delivery).with(notification) }

    var key: RecordKey { DeliveryRecord.key(notification, index) }
    var lane: Lane {
        Lane(
            device: device, collapseKey: digest ?? collapseKey, isDigest: digest != nil,
            passing: digest == nil && collapseKey == nil ? pacing?.passing : nil)
    }
    /// Whether it takes the place of what waits in its lane.
    var replaces: Bool { collapseKey != nil && digest == nil }
    var laneKey: RecordKey { lane.prefix.with(sequenceVersion).with(sequenceIndex) }
    var owner: UserDigest { UserDigest(uid: uid, device: device) }
    /// Ends with the same bytes as `laneKey`.
    var waitingKey: RecordKey { waitingKey(of: owner) }
    /// The same where `owner` is known: it is a hash.
    func waitingKey(of owner: UserDigest) -> RecordKey {
        RecordKey(.waiting).with(owner.value).with(sequenceVersion).with(sequenceIndex)
    }
    static let sequenceBytes = 12
    var leasedKey: RecordKey { RecordKey(.leased).with(key.tail) }

    /// The rows of those with which it can go as one; nil: it goes alone.
    var threadPrefix: RecordKey? {
        guard let pacing, let thread = pacing.mergingThread else { return nil }
        let prefix = RecordKey(.thread).with(device).with(thread)
        return pacing.passing.map { prefix.with($0) } ?? prefix.with(nil)
    }
    /// Ends with the same bytes as `laneKey`.
    var threadKey: RecordKey? { threadPrefix?.with(sequenceVersion).with(sequenceIndex) }

    /// Whether it waits and nothing of it can have been shown: it can go as one with others of its thread.
    var isHeldBack: Bool { machine.state == .pending && machine.isUntried }

    /// The same in the place of an older one with its collapse key, which was held back: it waits as long, and counts
    /// the older one, if it is of the same thread, and what went into it. The older one's turns are its own, if it has
    /// none.
    func takingPlace(of former: inout DeliveryRecord) -> DeliveryRecord {
        var delivery = self
        guard let hold = former.machine.hold, pacing?.passing == former.pacing?.passing else {
            delivery.takeCounts(of: &former, isCounted: false)
            return delivery
        }
        _ = delivery.machine.held(until: former.machine.time, by: hold)
        let isSameThread = threadPrefix != nil && threadPrefix == former.threadPrefix
        var pacing = pacing ?? Pacing(isPaced: true)
        if pacing.turn == nil {
            pacing = pacing.with(turnsOf: former.pacing)
            former.pacing = former.pacing?.with(turnsOf: nil)
        }
        delivery.pacing = pacing
        delivery.takeCounts(of: &former, isCounted: isSameThread)
        return delivery
    }

    /// Counts from now on what another one has counted, and that one itself if `isCounted`.
    private mutating func takeCounts(of former: inout DeliveryRecord, isCounted: Bool) {
        guard let other = former.pacing, let count = isCounted ? other.count : other.merged, count > 0 else { return }
        pacing = (pacing ?? Pacing(isPaced: true)).merging(count, of: other)
        former.pacing = other.gone(into: id, isCounted: isCounted)
    }

    /// Where the lane's one row stands while this delivery is its head.
    var dueKey: RecordKey {
        if let queue { return RecordKey(.queued).with(queue).with(time: machine.time).with(lane.prefix.tail) }
        guard let parkedAt else { return lane.dueKey(machine.time) }
        return AttemptGroup(host: parkedAt, uid: uid).key.with(time: machine.time).with(lane.prefix.tail)
    }

    /// Among the dead, once it is.
    var deadKey: RecordKey { RecordKey(.dead).with(time: machine.time).with(key.tail) }

    var shown: Notifier.DeliveryStatus {
        var shown = Notifier.DeliveryStatus(
            delivery: id, device: device, uid: uid, state: machine.state, attempts: machine.attempts)
        shown.reason = machine.reason ?? (machine.state == .pending ? machine.hold?.rawValue : nil)
        shown.lastAttempt = machine.lastAttempt
        shown.history = machine.history
        switch machine.state {
        case .pending: shown.nextAttemptAt = Int(machine.time)
        case .leased: break
        case .delivered, .dropped, .dead: shown.finishedAt = Int(machine.time)
        }
        return shown
    }
}

/// Deliveries that keep their order: one device and collapse key, one attempt at a time. Those of a mailbox: one device
/// and thread, which go together.
struct Lane: Hashable, Sendable {
    var device: String
    /// Of a digest: the thread.
    var collapseKey: String?
    /// Whether its deliveries go together. All lanes of a mailbox are such ones, and no others.
    var isDigest = false
    /// Without a collapse key: of deliveries that quiet windows do not concern.
    var passing: Pacing.Passing?

    var prefix: RecordKey {
        let lanes = RecordKey(.lane).with(device)
        return passing.map { lanes.with($0) } ?? lanes.with(collapseKey)
    }

    func dueKey(_ time: Int64) -> RecordKey { RecordKey(.due).with(time: time).with(prefix.tail) }
}

/// Lanes of one user at one host that are due and wait until attempts there have ended.
struct AttemptGroup: Hashable, Sendable {
    /// The host and port; of Web Push with `pushServicePrefix` before it: webhooks there are counted apart.
    var host: String
    var uid: String

    /// No host has a blank.
    private static let pushServicePrefix = "webpush "

    init(host: String, uid: String) { (self.host, self.uid) = (host, uid) }

    init(at address: DeviceAddress, of uid: String) {
        let prefix = if case .webpush = address { AttemptGroup.pushServicePrefix } else { "" }
        self.init(host: prefix + address.host, uid: uid)
    }

    /// Whether a host of a group is a push service of browsers, where many users have their devices.
    static func isPushService(_ host: String) -> Bool { host.hasPrefix(pushServicePrefix) }

    var key: RecordKey { AttemptGroup.hostKey(host).with(uid) }
    static func hostKey(_ host: String) -> RecordKey { RecordKey(.parked).with(host) }
}

/// A row of `due`, `parked` or `queued`: when and where a lane stands.
struct LaneRow {
    /// Of `parked`.
    var group: AttemptGroup?
    var time: Int64
    /// The lane's rows begin with it.
    var lane: RecordKey

    /// Nil when it is no such row.
    init?(_ key: RecordKey) {
        var reader = RecordKeyReader(key.bytes)
        if key.bytes.first == RecordKey.Table.parked.rawValue {
            guard let host = reader.text(), let uid = reader.text() else { return nil }
            group = AttemptGroup(host: host, uid: uid)
        }
        if key.bytes.first == RecordKey.Table.queued.rawValue { guard reader.text() != nil else { return nil } }
        guard let number = reader.number() else { return nil }
        time = Int64(clamping: number)
        lane = RecordKey(.lane).with(reader.tail)
    }
}
