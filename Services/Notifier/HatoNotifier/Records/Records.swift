import HatoFollow
import HatoModel

/// A trigger, and the position in its database's feed after which it sees changes.
struct TriggerRecord: FieldObject {
    var trigger: Notifier.Trigger
    var startsAfter: UInt64
    var epoch: String

    static let fields = Fields<Self>(
        blank: Self(trigger: Notifier.Trigger.fields.blank, startsAfter: 0, epoch: ""),
        .required("trigger", \.trigger),
        .required("startsAfter", \.startsAfter),
        .required("epoch", \.epoch))

    static func key(_ id: String) -> RecordKey { RecordKey(.trigger).with(id) }
}

/// How far the feed of a database was read: what fires a trigger up to `version` of `epoch` was written down.
struct CursorRecord: FieldObject, Hashable {
    var version: UInt64
    var epoch: String
    /// When the newest change that was handled had been committed, in milliseconds since 1970.
    var time: Int64
    /// How often changes were no longer kept when we came for them, and how many versions that were, as far as known.
    var gaps: Int
    var missedVersions: UInt64
    /// Set when another history took the place of the one followed before (a backup was restored): what was committed
    /// before this time had been handled there.
    var handledThrough: Int64?

    static let fields = Fields<Self>(
        blank: Self(version: 0, epoch: ""),
        .required("version", \.version),
        .required("epoch", \.epoch),
        .required("time", \.time),
        .required("gaps", \.gaps),
        .required("missedVersions", \.missedVersions),
        .optional("handledThrough", \.handledThrough))

    init(version: UInt64, epoch: String, time: Int64 = 0) {
        self.version = version
        self.epoch = epoch
        self.time = time
        gaps = 0
        missedVersions = 0
    }

    /// Before the oldest change that is kept, in whatever history.
    static let beginning = CursorRecord(version: 0, epoch: "")

    static func key(_ database: String) -> RecordKey { RecordKey(.cursor).with(database) }
}

struct NotificationRecord: FieldObject {
    var id: String
    var createdAt: Int64
    var expiresAt: Int64
    var text: Notifier.NotificationText
    var localized: [String: Notifier.NotificationText]?
    var data: [String: String]
    var collapseKey: String?
    var options: Notifier.DeliveryOptions?
    var platforms: Notifier.PlatformMembers?
    var trigger: String?
    var path: String?
    var recipients: Int
    /// The row that makes a repetition known, forgotten together with this one.
    var idempotencyKey: [UInt8]?
    /// The id of its `CategoryRecord`.
    var category: String?
    /// Of a silent push: what it withdraws.
    var withdrawal: WithdrawalContent?
    /// Whether there is an `OriginRecord` of its trigger and path.
    var hasOrigin = false
    /// When it was withdrawn, in milliseconds since 1970; what is accepted of it later is dropped.
    var withdrawnAt: Int64?
    /// The places of effects, as `thread` and `data.x`, of which something is gone.
    var cut: [String]?

    /// Whether what fills a place is all of it.
    func isWhole(_ place: PlaceText.Place) -> Bool { cut?.contains(place.name) != true }
    /// Whether pushes carry what it says; nil: they do.
    var contentChoice: Notifier.ContentChoice?
    /// Of a webhook that reports an action: what was chosen.
    var choice: ChoiceRecord?

    static let fields = Fields<Self>(
        blank: Self(
            id: "", createdAt: 0, expiresAt: 0, text: Notifier.NotificationText(), data: [:], recipients: 0),
        .required("id", \.id),
        .required("createdAt", \.createdAt),
        .required("expiresAt", \.expiresAt),
        .required("text", \.text),
        .optional("localized", \.localized),
        .required("data", \.data),
        .optional("collapseKey", \.collapseKey),
        .optional("options", \.options),
        .optional("platforms", \.platforms),
        .optional("trigger", \.trigger),
        .optional("path", \.path),
        .required("recipients", \.recipients),
        .optional("idempotencyKey", \.idempotencyKey),
        .optional("category", \.category),
        .optional("withdrawal", \.withdrawal),
        .flag("hasOrigin", \.hasOrigin),
        .optional("withdrawnAt", \.withdrawnAt),
        .optional("cut", \.cut),
        .optional("content", \.contentChoice),
        .optional("choice", \.choice))

    static func key(_ id: String) -> RecordKey { RecordKey(.notification).with(id) }
    var purgeKey: RecordKey { NotificationRecord.purgeKey(id, at: expiresAt) }
    static func purgeKey(_ id: String, at time: Int64) -> RecordKey { RecordKey(.purge).with(time: time).with(id) }

    /// What it says, in all places that hold it, as far as it goes with the last delivery.
    var hasTexts: Bool {
        text.title != nil || text.body != nil || localized != nil || !data.isEmpty && !needsData || platforms != nil
            || options?.image != nil || options?.link != nil || choice?.text != nil
    }

    /// Whether responses to it write what stands in `data`; they come after the last delivery.
    private var needsData: Bool { category != nil }

    /// The same when nothing of it is to be delivered any more.
    var withoutTexts: NotificationRecord {
        var record = self
        (record.text, record.localized, record.platforms) = (.init(), nil, nil)
        if !needsData { record.data = [:] }
        record.options?.image = nil
        record.options?.link = nil
        record.choice?.text = nil
        return record
    }
}

struct IdempotencyRecord: FieldObject {
    var notification: String
    var recipients: Int
    /// Of what was asked: the same key with something else is a mistake.
    var fingerprint: String
    var acceptedAt: Int64
    /// Of a notification that is accepted part by part, while parts are still to come: the last user that has it.
    /// `recipients` are those of the parts that came.
    var through: String?
    /// Whether its deliveries are made in pages.
    var isFannedOut = false

    static let fields = Fields<Self>(
        blank: Self(notification: "", recipients: 0, fingerprint: "", acceptedAt: 0),
        .required("notification", \.notification),
        .required("recipients", \.recipients),
        .required("fingerprint", \.fingerprint),
        .required("acceptedAt", \.acceptedAt),
        .optional("through", \.through),
        .flag("isFannedOut", \.isFannedOut))

    static func key(scope: String, _ key: String) -> RecordKey { RecordKey(.idempotency).with(scope).with(key) }
}

/// What happened, as it stands in the store's record of a commit.
struct OutboxEvent: RecordedEvent, Hashable {
    static let method = Notifier.Event.method
    static let endMethod = Notifier.Cancelled.method

    var type: Notifier.EventType
    var time: Int64
    var notification: String
    var recipients: Int?
    var trigger: String?
    var path: String?
    var delivery: String?
    var device: String?
    var uid: String?
    var reason: String?
    var action: String?
    var text: String?
    var quickReply: Int?

    static let fields = Fields<Self>(
        blank: Self(),
        .required("type", \.type),
        .required("time", \.time),
        .required("notification", \.notification),
        .optional("recipients", \.recipients),
        .optional("trigger", \.trigger),
        .optional("path", \.path),
        .optional("delivery", \.delivery),
        .optional("device", \.device),
        .optional("uid", \.uid),
        .optional("reason", \.reason),
        .optional("action", \.action),
        .optional("text", \.text),
        .optional("quickReply", \.quickReply))

    private init() {
        type = .accepted
        time = 0
        notification = ""
    }

    /// Of a response: the event of its type, without what the response brings.
    init(_ type: Notifier.EventType, of notification: String, _ responder: Responder, at time: Int64) {
        self.type = type
        self.time = time
        self.notification = notification
        uid = responder.uid
        device = responder.device
    }

    init(accepted notification: NotificationRecord) {
        type = .accepted
        time = notification.createdAt
        self.notification = notification.id
        recipients = notification.recipients
        trigger = notification.trigger
        path = notification.path
    }

    /// A notification is withdrawn from a user.
    init(withdrawn notification: String, from uid: String, at time: Int64) {
        type = .withdrawn
        self.time = time
        self.notification = notification
        self.uid = uid
    }

    /// Nil while the delivery goes on.
    init?(finished delivery: DeliveryRecord) {
        switch delivery.machine.state {
        case .pending, .leased: return nil
        case .delivered: type = .delivered
        case .dropped: type = .dropped
        case .dead: type = .dead
        }
        time = delivery.machine.time
        notification = delivery.notification
        self.delivery = delivery.id
        device = delivery.device
        uid = delivery.uid
        reason = delivery.machine.reason
    }
}
