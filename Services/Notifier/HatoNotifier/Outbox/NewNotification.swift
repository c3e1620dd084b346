import HatoModel

/// A notification that is to be accepted: whom it is for, what it says, and what makes a repetition of it known.
struct NewNotification: Sendable {
    enum Recipients: Sendable, Hashable {
        /// Every active device of these users; users without one are passed over.
        case uids([String])
        /// Each must exist and be active.
        case devices([String])
        /// The devices that have these tokens; where none has, the one that is given, without a user. Those that are
        /// known to be gone are passed over.
        case tokens([DeviceRecord])
        /// Some of those that a trigger notifies; its notification is accepted part by part.
        case part(RecipientPart)
        /// Every active device of the users that are subscribed to a topic.
        case topic(String)
    }

    struct Idempotency: Sendable, Hashable {
        /// The user of the key: two senders may choose the same one.
        var scope: String
        var key: String
        var fingerprint: String
    }

    var recipients: Recipients
    var text: Notifier.NotificationText
    /// Texts by locale, which take its place on devices with these.
    var localized: [String: Notifier.NotificationText]?
    var data: [String: String] = [:]
    var collapseKey: String?
    var options: Notifier.DeliveryOptions?
    var platforms: Notifier.PlatformMembers?
    /// Milliseconds since 1970; what it is about happened then.
    var createdAt: Int64
    var expiresAt: Int64
    var trigger: String?
    var path: String?
    var idempotency: Idempotency?
    /// Of the change that it is about.
    var position: ChangePosition?
    /// The category whose actions it has.
    var category: String?
    /// Whether it counts for the badge; otherwise the tree says the counts of its threads.
    var isCounted = true
    /// Whether it is withdrawn when the node at `path` is deleted.
    var isWithdrawable = false
    /// The places of effects of which something is gone, since it was too long.
    var cut: [String]?
    /// Whether pushes carry what it says; nil: they do.
    var content: Notifier.ContentChoice?
}

/// What accepting came to.
struct AcceptedNotification: Sendable, Hashable {
    /// Nil when it has no recipient and no request waits for a response.
    var notification: String?
    var recipients: Int
    /// It was accepted before, under the same idempotency key.
    var isRepetition = false
    /// Devices left out because there were more than one notification may go to.
    var leftOut = 0
    /// Of tokens: the number of the delivery of each; nil: it is known to be gone.
    var deliveries: [Int?] = []
    /// Its deliveries are made in pages; `recipients` are users, or devices that were named.
    var isFannedOut = false
}

/// The cursor of a feed on its way: moved only from where its reader believes it to be.
struct CursorMove: Sendable {
    var from: CursorRecord
    var to: CursorRecord
}

/// Why the outbox takes nothing.
enum OutboxRefusal: Error, Sendable, Hashable {
    case unknownDevice(String)
    case disabledDevice(String)
    /// The deliveries of so many notifications are still to be made.
    case tooManyFanOuts(Int)
    case idempotencyKeyReused
    /// The cursor is not where its reader believed: the triggers of the database changed meanwhile.
    case cursorMoved
}
