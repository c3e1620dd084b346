extension Notifier {
    /// Follows the events of notifications. Positions grow; a follower resumes with its last position and the epoch.
    public struct Follow: RPCRequest {
        public static let method = "notifier.follow"
        public static let summary = """
            Follows the events of notifications from now on, or after a given position. At most `followers-max` \
            followers, a quarter of them of one connection (`too_many_followers`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var after: Int?
        public var epoch: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after,
                """
                The `position` of the last event received: sends later ones; only later events when absent. \
                0: from the oldest kept one (7 days). If it is older than that: failed_precondition \
                `compacted` with `data.oldest`
                """),
            .optional(
                "epoch", \.epoch,
                """
                The `epoch` that `after` comes from; if the store has another one, failed_precondition \
                `unknown_version`. Without it, events are missed silently after a backup is restored
                """, example: "0123456789abcdef0123456789abcdef"))

        public init(after: Int? = nil, epoch: String? = nil) {
            self.after = after
            self.epoch = epoch
        }

        public typealias Result = FollowResult

        public static let example = RPCExample(
            Follow(after: 0),
            Result(
                subscription: "1k8f3q-1", epoch: "0123456789abcdef0123456789abcdef", position: 1_048_575,
                time: 1_795_000_004_120))
    }

    public struct Unfollow: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.unfollow"
        public static let summary = "Ends a follower of this connection"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var subscription: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: ""),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"))
        public init(subscription: String) { self.subscription = subscription }

        public static let example = RPCExample(Unfollow(subscription: "1k8f3q-1"), Empty())
    }

    /// The kind of an event of a notification or a delivery.
    public enum EventType: String, FieldChoice {
        /// A notification is durable.
        case accepted
        /// A device's receiver accepted it.
        case delivered
        case dropped
        case dead
        /// A user chose an action of it, or its effect was refused.
        case action
        /// A device shows it.
        case displayed
        /// A user opened it.
        case opened
        /// A user dismissed it.
        case dismissed
        /// A notification was withdrawn from a user.
        case withdrawn
    }

    /// An event of a notification (`accepted`), of one delivery of it, or of a response to it.
    public struct Event: RPCNotification {
        public static let method = "notifier.event"
        public static let summary =
            "An event of a notification (`accepted`), of one of its deliveries, or of a response to it"

        public var subscription: String
        public var position: Int
        public var epoch: String
        public var time: Int
        public var type: EventType
        public var notification: String
        public var recipients: Int?
        public var trigger: String?
        public var path: String?
        public var delivery: String?
        public var device: String?
        public var uid: String?
        public var reason: String?
        public var action: String?
        public var text: String?
        public var quickReply: Int?

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", position: 0, epoch: "", time: 0, type: .accepted, notification: ""),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"),
            .required("position", \.position, "Grows with each event: the `after` with which to resume"),
            .required(
                "epoch", \.epoch,
                """
                The epoch of the store: positions are comparable only within one epoch; it changes when a \
                backup is restored. 32 hexadecimal digits
                """),
            .required("time", \.time, "When it happened, in milliseconds since 1970"),
            .required(
                "type", \.type,
                """
                `accepted`: the notification is durable; `delivered`: the receiver responded with 2xx; \
                `dropped`, `dead`: a delivery ended undelivered, see `reason`; `action`: a user chose an action, or, \
                with `reason`, its effect was refused; `displayed`, `opened`, `dismissed`: reports of devices; \
                `withdrawn`: the user has read the thread, or the notification was taken back
                """),
            .required("notification", \.notification, "The id of the notification, `ntf_…`"),
            .optional(
                "recipients", \.recipients,
                """
                Of `accepted`: the number of deliveries, one for each device; of users, or devices that were named, \
                when deliveries are made in pages
                """),
            .optional("trigger", \.trigger, "The id of the trigger that made the notification"),
            .optional("path", \.path, "The path of the change that fired the trigger"),
            .optional("delivery", \.delivery, "The id of the delivery; absent for `accepted` and responses"),
            .optional(
                "device", \.device, "The id of the device; absent for `accepted`, and for responses of unknown ones"),
            .optional("uid", \.uid, "The user of the device, or of `withdrawn`; absent for `accepted`"),
            .optional(
                "reason", \.reason,
                """
                Why the delivery ended without being delivered: as in the result of `notifier.status`; of `action`: why \
                its effect was refused, as in the result of `notifier.respond`
                """),
            .optional("action", \.action, "Of `action`: the id of the action"),
            .optional("text", \.text, "Of `action`: the text that the user wrote"),
            .optional("quickReply", \.quickReply, "Of `action`: the index of the quick reply that was chosen"))

        public init(
            subscription: String, position: Int, epoch: String, time: Int, type: EventType, notification: String
        ) {
            self.subscription = subscription
            self.position = position
            self.epoch = epoch
            self.time = time
            self.type = type
            self.notification = notification
        }

        public static let example: Event = {
            var event = Event(
                subscription: "1k8f3q-1", position: 44_040_192, epoch: "0123456789abcdef0123456789abcdef",
                time: 1_795_000_004_120, type: .delivered, notification: "ntf_4c7d1e9a2b6f8035")
            event.delivery = "ntf_4c7d1e9a2b6f8035-0"
            event.device = "dev_8s2k1c9d0f4g7h3j"
            event.uid = "u1"
            return event
        }()
    }
}

extension Notifier {
    /// The end of a follower that the client did not request: `permission_denied`, `token_expired`, `compacted`,
    /// `stopping`.
    public struct Cancelled: RPCNotification {
        public static let method = "notifier.cancelled"
        public static let summary = "The service ended a follower"

        public var subscription: String
        public var reason: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", reason: ""),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"),
            .required(
                "reason", \.reason,
                """
                `permission_denied`: the connection is no longer an administrator's; `token_expired`: the \
                credential of the connection expired; `compacted`: the follower is behind the oldest kept \
                event; `stopping`: the service stops, or its store failed
                """))

        public init(subscription: String, reason: String) {
            self.subscription = subscription
            self.reason = reason
        }

        public static let example = Cancelled(subscription: "1k8f3q-1", reason: "token_expired")
    }

    /// Writes a copy of the store under the service's `--backup-dir`, and nowhere else.
    public struct Backup: RPCRequest {
        public static let method = "notifier.backup"
        public static let summary = """
            Writes a copy of the store into a new folder under `--backup-dir`. Restore it with \
            `hato-notifier restore`. It contains signing secrets
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true

        public var name: BackupName

        public static let fields = Fields<Self>(
            blank: Self(name: .example),
            .required(
                "name", \.name,
                "The name of the backup, a new folder: 1 to 100 of A-Z a-z 0-9 . _ -, not starting with a dot"))

        public init(name: BackupName) { self.name = name }

        public typealias Result = BackupResult

        public static let example = RPCExample(Backup(name: .example), BackupResult.example)
    }
}

extension Notifier.Dead {
    /// A delivery that ended in failure.
    public struct Letter: FieldObject, Hashable {
        public var delivery: String
        public var notification: String
        public var device: String
        public var uid: String
        public var title: String?
        public var diedAt: Int
        public var reason: String
        public var attempts: Int
        public var lastAttempt: Notifier.AttemptReport?

        public static let fields = Fields<Self>(
            blank: Self(delivery: "", notification: "", device: "", uid: "", diedAt: 0, reason: "", attempts: 0),
            .required(
                "delivery", \.delivery,
                "The id of the delivery: the `webhook-id` header of every attempt"),
            .required("notification", \.notification, "The id of the notification, `ntf_…`"),
            .required("device", \.device, "The id of the device, `dev_…`"),
            .required("uid", \.uid, "The user of the device"),
            .optional("title", \.title, "The title of the notification"),
            .required("diedAt", \.diedAt, "When it became dead, in milliseconds since 1970"),
            .required(
                "reason", \.reason,
                """
                Why it is dead: `expired` (after failed attempts), `rejected` (the provider says that the push \
                itself is wrong), `unreadable` (a damaged record)
                """),
            .required("attempts", \.attempts, "The number of attempts"),
            .optional("lastAttempt", \.lastAttempt, "The last attempt and its outcome"))

        public init(
            delivery: String, notification: String, device: String, uid: String, diedAt: Int, reason: String,
            attempts: Int
        ) {
            self.delivery = delivery
            self.notification = notification
            self.device = device
            self.uid = uid
            self.diedAt = diedAt
            self.reason = reason
            self.attempts = attempts
        }
    }

    public struct List: RPCRequest {
        public static let method = "notifier.dead.list"
        public static let summary = "Lists the dead deliveries, oldest first; they are kept for 30 days"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: "1795003600000.ntf_4c7d1e9a2b6f8035-0"),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 100 when absent"))

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var dead: [Letter]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(dead: []),
                .required("dead", \.dead, "The dead deliveries, oldest first"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(dead: [Letter], after: String? = nil) {
                self.dead = dead
                self.after = after
            }
        }

        public static let example = RPCExample(
            List(limit: 1),
            Result(dead: [
                Letter(
                    delivery: "ntf_4c7d1e9a2b6f8035-0", notification: "ntf_4c7d1e9a2b6f8035",
                    device: "dev_8s2k1c9d0f4g7h3j", uid: "u1", diedAt: 1_795_003_600_000,
                    reason: "expired", attempts: 291)
            ]))
    }

    /// Puts dead deliveries back in the outbox, with all attempts and a new time to live.
    public struct Replay: RPCRequest {
        public static let method = "notifier.dead.replay"
        public static let summary = """
            Returns dead deliveries to the outbox, those named or all, with 86,400 seconds to live
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var deliveries: [String]?
        public var all: Bool?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "deliveries", \.deliveries,
                """
                The ids of 1 to 1,000 deliveries; those that are not dead are ignored. Exactly one of \
                `deliveries` and `all`
                """),
            .optional("all", \.all, "True: all dead deliveries; exactly one of `deliveries` and `all`", example: true))

        public init(deliveries: [String]? = nil, all: Bool? = nil) {
            self.deliveries = deliveries
            self.all = all
        }

        public struct Result: FieldObject, Hashable {
            public var replayed: Int

            public static let fields = Fields<Self>(
                blank: Self(replayed: 0),
                .required("replayed", \.replayed, "The number of deliveries that wait again"))
            public init(replayed: Int) { self.replayed = replayed }
        }

        public static let example = RPCExample(Replay(deliveries: ["ntf_4c7d1e9a2b6f8035-0"]), Result(replayed: 1))
    }

    public struct Drop: RPCRequest {
        public static let method = "notifier.dead.drop"
        public static let summary = """
            Drops dead deliveries, those named or all: their state becomes `dropped` (`administrator`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var deliveries: [String]?
        public var all: Bool?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "deliveries", \.deliveries,
                """
                The ids of 1 to 1,000 deliveries; those that are not dead are ignored. Exactly one of \
                `deliveries` and `all`
                """,
                example: ["ntf_4c7d1e9a2b6f8035-0"]),
            .optional("all", \.all, "True: all dead deliveries; exactly one of `deliveries` and `all`"))

        public init(deliveries: [String]? = nil, all: Bool? = nil) {
            self.deliveries = deliveries
            self.all = all
        }

        public struct Result: FieldObject, Hashable {
            public var dropped: Int

            public static let fields = Fields<Self>(
                blank: Self(dropped: 0),
                .required("dropped", \.dropped, "The number of dropped deliveries"))
            public init(dropped: Int) { self.dropped = dropped }
        }

        public static let example = RPCExample(Drop(all: true), Result(dropped: 3))
    }
}
