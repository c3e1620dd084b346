extension Notifier {
    /// The recipients of `notifier.send`: one of the members.
    public struct SendTarget: FieldObject, Hashable {
        public var uids: [String]?
        public var devices: [String]?
        public var tokens: [NamedToken]?
        public var topic: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uids", \.uids,
                "All active devices of these users, 1 to 1,000"),
            .optional(
                "devices", \.devices,
                """
                These devices, 1 to 1,000; all must be registered and active (`device_not_found`, \
                `device_disabled`)
                """),
            .optional(
                "tokens", \.tokens,
                """
                These tokens, 1 to 1,000, registered or not: one without a device gets one without a user. Tokens \
                that are known to be gone are passed over
                """),
            .optional(
                "topic", \.topic,
                "All active devices of the users that are subscribed to this topic (`notifier.topics.subscribe`)"))

        private init() {}

        public init(uids: [String]) { self.uids = uids }
        public init(devices: [String]) { self.devices = devices }
        public init(tokens: [NamedToken]) { self.tokens = tokens }
        public init(topic: String) { self.topic = topic }
    }

    /// Accepts a notification and responds when it is durable; delivery follows at least once per device.
    public struct Send: RPCRequest {
        public static let method = "notifier.send"
        public static let summary = "Accepts a notification for users or devices; responds when it is durable"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var to: SendTarget
        public var notification: NotificationText?
        public var localized: [String: NotificationText]?
        public var type: String?
        public var data: [String: String]?
        public var options: DeliveryOptions?
        public var platforms: PlatformMembers?
        public var idempotencyKey: String?
        public var dryRun: Bool?
        public var category: String?
        public var content: ContentChoice?

        public static let fields = Fields<Self>(
            blank: Self(to: SendTarget.fields.blank),
            .required(
                "to", \.to,
                """
                The recipients: exactly one of `uids`, `devices`, `tokens` and `topic`. Deliveries of a topic, or \
                to more than 1,000 devices, are made in pages after the response (`fanOut` of `notifier.status`)
                """),
            .optional(
                "notification", \.notification,
                """
                The shown text: a title, a body or both; `data` alone is refused. When absent, that of the template \
                of `type`. Without both, each device shows what the `platforms` of its own say, and gets a silent \
                push when they say nothing; a browser or mailbox gets nothing then
                """),
            .optional(
                "localized", \.localized,
                """
                Texts by locale, at most 32, beside `notification` or the template: a device gets the text of its \
                locale (`ja-JP`), else of its language (`ja`), else `notification`
                """, example: ["en": NotificationText(title: "News", body: "Maintenance is tomorrow")]),
            .optional(
                "type", \.type,
                """
                The type that `data` must fit (`notifier.types.set`): an unknown one is refused with `invalidType`, a \
                missing or wrong field with `invalidData` and its name in `data.field` of the error. The app gets \
                it as `transition_type`
                """, example: "search_results_list"),
            .optional(
                "data", \.data,
                """
                Values for the receiving app: strings by name; names and values have at most 4,096 bytes of \
                UTF-8 in all, with `transition_type` if there is a type
                """,
                example: ["chat": "c1"]),
            .optional("options", \.options, "Options of the delivery", example: DeliveryOptions(ttlSeconds: 3600)),
            .optional(
                "platforms", \.platforms,
                "Members of the platforms' own, which take the place of those that the notifier makes",
                example: {
                    var members = PlatformMembers()
                    members.apns = ["aps": ["target-content-id": "c1"]]
                    return members
                }()),
            .optional(
                "idempotencyKey", \.idempotencyKey,
                """
                1 to 256 bytes: a repeated call with the same parameters within 24 hours gets the same \
                response and is not sent again; with other parameters it gets already_exists \
                `idempotency_key_reused`
                """),
            .optional(
                "dryRun", \.dryRun, "True: counts the devices; writes and sends nothing; false when absent",
                example: true),
            .optional(
                "category", \.category,
                "The category whose actions it has (`notifier.categories.set`); that of `type` when absent",
                example: "CHAT"),
            .optional(
                "content", \.content,
                """
                `full` when absent; `ids`: no provider gets a text, image, link or `data`: the push carries the id of \
                the notification alone as `hato`, and the app fetches what it shows. `platforms` are refused then
                """, example: .ids))

        private init(to: SendTarget) { self.to = to }

        public init(to: SendTarget, notification: NotificationText, idempotencyKey: String? = nil) {
            self.to = to
            self.notification = notification
            self.idempotencyKey = idempotencyKey
        }

        /// A notification with the text of its type.
        public init(to: SendTarget, type: String, data: [String: String]) {
            self.to = to
            self.type = type
            self.data = data
        }

        public struct Result: FieldObject, Hashable {
            public var notification: String?
            public var recipients: Int
            public var fanOut: Bool?

            public static let fields = Fields<Self>(
                blank: Self(notification: nil, recipients: 0),
                .optional(
                    "notification", \.notification,
                    "The id of the notification, `ntf_…`; absent after a dry run"),
                .required(
                    "recipients", \.recipients,
                    """
                    The number of devices for which a delivery was accepted or, in a dry run, would be accepted; with \
                    `fanOut` the number of users, or of devices that were named
                    """),
                .optional(
                    "fanOut", \.fanOut, "True: the deliveries are made in pages after this response; else absent"))

            public init(notification: String?, recipients: Int, fanOut: Bool? = nil) {
                self.notification = notification
                self.recipients = recipients
                self.fanOut = fanOut
            }
        }

        public static let example = RPCExample(
            Send(
                to: .init(uids: ["u1"]), notification: .init(title: "お知らせ", body: "メンテナンスは明日です"),
                idempotencyKey: "news-7"),
            Result(notification: "ntf_4c7d1e9a2b6f8035", recipients: 2))
    }

    /// The state of a delivery.
    public enum DeliveryState: String, FieldChoice {
        /// Waits for its time: the first attempt, or the next one after a failure.
        case pending
        /// Being attempted.
        case leased
        case delivered
        /// Ended without a failure of its own: `device_gone`, `expired`, `collapsed`, `outbox_full`, `administrator`,
        /// `off`, `muted`, `quiet`, `coalesced`, `present`, `withdrawn`,
        /// `seen`, `silent`.
        case dropped
        /// Ended after too many failures; kept for replay.
        case dead
    }

    /// The result of the last attempt, from the receiver or the network.
    public struct AttemptReport: FieldObject, Hashable {
        public var at: Int
        public var status: Int?
        public var id: String?
        public var error: String?

        public static let fields = Fields<Self>(
            blank: Self(at: 0),
            .required("at", \.at, "When it ended, in milliseconds since 1970"),
            .optional("id", \.id, "The provider's own name of the push"),
            .optional("status", \.status, "The HTTP status, or the code of SMTP; absent when there was no response"),
            .optional(
                "error", \.error,
                """
                Why it failed or was postponed, with the beginning of the response's body if there is one; \
                absent after a response of 2xx
                """))

        public init(at: Int, status: Int? = nil, error: String? = nil) {
            self.at = at
            self.status = status
            self.error = error
        }
    }

    /// One notification for one device.
    public struct DeliveryStatus: FieldObject, Hashable {
        public var delivery: String
        public var device: String
        public var uid: String
        public var state: DeliveryState
        public var reason: String?
        public var attempts: Int
        public var lastAttempt: AttemptReport?
        public var history: [AttemptReport]?
        public var nextAttemptAt: Int?
        public var finishedAt: Int?

        public static let fields = Fields<Self>(
            blank: Self(delivery: "", device: "", uid: "", state: .pending, attempts: 0),
            .required(
                "delivery", \.delivery,
                "The id of the delivery: the `webhook-id` header of every attempt"),
            .required("device", \.device, "The id of the device, `dev_…`"),
            .required("uid", \.uid, "The user of the device; empty for a token without a user"),
            .required(
                "state", \.state,
                """
                `pending`: waits for its next attempt; `leased`: an attempt is in progress; `delivered`: the \
                receiver responded with 2xx; `dropped`: ended undelivered, not kept for replay, see \
                `reason`; `dead`: ended in failure, see `reason`; kept 30 days for `notifier.dead.replay`
                """),
            .optional(
                "reason", \.reason,
                """
                Why it waits though it could be sent: `rate` (its device or user was sent as much as may be), `quiet` \
                (a quiet window); why it was dropped: `device_gone`, `expired` (before its first attempt), \
                `collapsed` (a newer one with the same collapse key), `outbox_full`, `administrator` \
                (`notifier.dead.drop`), `off`, `muted` or `quiet` (the user's preferences), `coalesced` (a newer one \
                of its thread shows it in its count), `present` (its user looks at what it is about), `withdrawn` \
                (read elsewhere, or taken back), of an e-mail `seen` (a device of the user registered or reported \
                something meanwhile), of an e-mail or at a browser `silent` (it shows nothing); or is dead: `expired` \
                (after failed attempts), `rejected` (the provider says that the push itself is wrong), \
                `unreadable` (a damaged record)
                """),
            .required(
                "attempts", \.attempts,
                """
                The number of attempts, the one in progress included; postponed ones, which did not call the \
                receiver, do not count
                """),
            .optional("lastAttempt", \.lastAttempt, "The last attempt and its outcome"),
            .optional(
                "history", \.history, "The attempts before the last one, oldest first, at most 11; absent without any"),
            .optional(
                "nextAttemptAt", \.nextAttemptAt,
                "When the next attempt is due, in milliseconds since 1970; only while pending"),
            .optional(
                "finishedAt", \.finishedAt,
                "When it was delivered, dropped or became dead, in milliseconds since 1970"))

        public init(delivery: String, device: String, uid: String, state: DeliveryState, attempts: Int) {
            self.delivery = delivery
            self.device = device
            self.uid = uid
            self.state = state
            self.attempts = attempts
        }
    }

    public struct Status: RPCRequest {
        public static let method = "notifier.status"
        public static let summary = """
            Returns the state of each delivery of a notification, in pages; kept for 7 days after the last one has \
            ended
            """
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var notification: String
        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(notification: ""),
            .required("notification", \.notification, "The id of the notification, `ntf_…`"),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: "ntf_4c7d1e9a2b6f8035-999"),
            .optional("limit", \.limit, "The maximum number of deliveries, 1 to 1,000; 1,000 when absent", example: 100)
        )
        public init(notification: String) { self.notification = notification }

        public struct Result: FieldObject, Hashable {
            public var notification: String
            public var createdAt: Int
            public var expiresAt: Int
            public var title: String?
            public var body: String?
            public var trigger: String?
            public var path: String?
            public var deliveries: [DeliveryStatus]
            public var fanOut: FanOut?
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(notification: "", createdAt: 0, expiresAt: 0, deliveries: []),
                .required("notification", \.notification, "The id of the notification, `ntf_…`"),
                .required("createdAt", \.createdAt, "When it was accepted, in milliseconds since 1970"),
                .required(
                    "expiresAt", \.expiresAt,
                    "The time after which it is no longer delivered, in milliseconds since 1970"),
                .optional(
                    "title", \.title,
                    "The title, until the last delivery has ended; while a dead one can be replayed"),
                .optional("body", \.body, "The body, as long as the title"),
                .optional("trigger", \.trigger, "The id of the trigger that made the notification"),
                .optional("path", \.path, "The path of the change that fired the trigger"),
                .required("deliveries", \.deliveries, "One entry for each device of the page"),
                .optional("fanOut", \.fanOut, "How far its deliveries are made; absent when all are"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(notification: String, createdAt: Int, expiresAt: Int, deliveries: [DeliveryStatus]) {
                self.notification = notification
                self.createdAt = createdAt
                self.expiresAt = expiresAt
                self.deliveries = deliveries
            }
        }

        public static let example: RPCExample<Status> = {
            var delivery = DeliveryStatus(
                delivery: "ntf_4c7d1e9a2b6f8035-0", device: "dev_8s2k1c9d0f4g7h3j", uid: "u1", state: .delivered,
                attempts: 2)
            delivery.lastAttempt = AttemptReport(at: 1_795_000_004_120, status: 200)
            delivery.finishedAt = 1_795_000_004_120
            return RPCExample(
                Status(notification: "ntf_4c7d1e9a2b6f8035"),
                Result(
                    notification: "ntf_4c7d1e9a2b6f8035", createdAt: 1_795_000_000_000, expiresAt: 1_795_086_400_000,
                    deliveries: [delivery]))
        }()
    }

    /// The position up to which the feed of one database was read.
    public struct CursorStatus: FieldObject, Hashable {
        public var database: String
        public var version: Int
        public var epoch: String?
        public var following: Bool
        public var gaps: Int
        public var error: String?

        public static let fields = Fields<Self>(
            blank: Self(database: "", version: 0, epoch: nil, following: false, gaps: 0),
            .required("database", \.database, "The database that is followed"),
            .required("version", \.version, "Changes up to this version are handled"),
            .optional(
                "epoch", \.epoch,
                "The epoch that `version` belongs to"),
            .required("following", \.following, "Whether the database is followed now"),
            .required(
                "gaps", \.gaps,
                """
                How often, since the database was first followed and across restarts, the notifier asked for \
                changes that were no longer kept; triggers did not fire for those
                """),
            .optional("error", \.error, "Why the database is not followed now"))

        public init(database: String, version: Int, epoch: String?, following: Bool, gaps: Int, error: String? = nil) {
            self.database = database
            self.version = version
            self.epoch = epoch
            self.following = following
            self.gaps = gaps
            self.error = error
        }
    }

    public struct Stats: RPCRequest {
        public static let method = "notifier.stats"
        public static let summary =
            """
            Returns the number of deliveries by state, and the position in the changes of each followed \
            database
            """
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var pending: Int
            public var leased: Int
            public var dead: Int
            public var delivered: Int
            public var dropped: Int
            public var incomplete: Int
            public var nextDueAt: Int?
            public var cursors: [CursorStatus]

            public static let fields = Fields<Self>(
                blank: Self(pending: 0, leased: 0, dead: 0, delivered: 0, dropped: 0, cursors: []),
                .required(
                    "pending", \.pending,
                    "The number of deliveries that are not finished: in state `pending` or `leased`"),
                .required("leased", \.leased, "The number of deliveries in state `leased`"),
                .required("dead", \.dead, "The number of deliveries in state `dead`"),
                .required(
                    "delivered", \.delivered,
                    "The number of deliveries that ended as `delivered` since the service started"),
                .required(
                    "dropped", \.dropped, "The number of deliveries that ended as `dropped` since the service started"),
                .required(
                    "incomplete", \.incomplete,
                    """
                    The number of times, since the service started, that a trigger fired without values it \
                    needs, because a commit of more than 1 MiB keeps no values from before
                    """),
                .optional(
                    "nextDueAt", \.nextDueAt,
                    """
                    When the next attempt of a waiting delivery is due, in milliseconds since 1970; absent when \
                    none waits
                    """),
                .required("cursors", \.cursors, "One entry for each database that is followed"))

            public init(pending: Int, leased: Int, dead: Int, delivered: Int, dropped: Int, cursors: [CursorStatus]) {
                self.pending = pending
                self.leased = leased
                self.dead = dead
                self.delivered = delivered
                self.dropped = dropped
                incomplete = 0
                self.cursors = cursors
            }
        }

        public static let example = RPCExample(
            Stats(),
            Result(
                pending: 3, leased: 1, dead: 0, delivered: 412, dropped: 2,
                cursors: [
                    CursorStatus(database: "default", version: 9_121, epoch: "5f0c…", following: true, gaps: 0)
                ]))
    }
}
