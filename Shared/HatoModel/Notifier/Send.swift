extension Notifier {
    /// Whom `notifier.send` reaches: one of the members.
    public struct SendTarget: Codable, Sendable, Hashable {
        /// Every active device of these users.
        public var uids: [String]?
        public var devices: [String]?

        public init(uids: [String]) { self.uids = uids }
        public init(devices: [String]) { self.devices = devices }
    }

    /// Accepts a notification and answers when it is durable; delivering goes on at least once per device.
    public struct Send: RPCRequest {
        public static let method = "notifier.send"
        public static let summary = "Accepts a notification for users or devices; answered when it is durable"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var to: SendTarget
        public var notification: NotificationText
        /// For the receiving app; texts, because telephones carry only these.
        public var data: [String: String]?
        public var options: DeliveryOptions?
        /// The same key within 24 hours answers what the first call answered and sends nothing.
        public var idempotencyKey: String?
        /// Says how many devices there are, writes and sends nothing.
        public var dryRun: Bool?

        public init(to: SendTarget, notification: NotificationText, idempotencyKey: String? = nil) {
            self.to = to
            self.notification = notification
            self.idempotencyKey = idempotencyKey
        }

        public struct Result: Codable, Sendable, Hashable {
            /// Absent after a dry run.
            public var notification: String?
            /// How many devices it is delivered to.
            public var recipients: Int

            public init(notification: String?, recipients: Int) {
                self.notification = notification
                self.recipients = recipients
            }
        }

        public static let example = RPCExample(
            Send(
                to: .init(uids: ["u1"]), notification: .init(title: "お知らせ", body: "メンテナンスは明日です"),
                idempotencyKey: "news-7"),
            Result(notification: "ntf_4c7d1e9a2b6f8035", recipients: 2))
    }

    /// Where a delivery stands.
    public enum DeliveryState: String, Codable, Sendable, Hashable, CaseIterable {
        /// Waits for its time: the first attempt, or the next one after a failure.
        case pending
        /// Being attempted.
        case leased
        case delivered
        /// Given up for a reason that is nobody's failure: `device_gone`, `expired`, `collapsed`, `administrator`.
        case dropped
        /// Given up after too many failures; kept for replay.
        case dead
    }

    /// The last attempt, as the receiver or the network answered it.
    public struct AttemptReport: Codable, Sendable, Hashable {
        public var at: Int
        /// HTTP status; absent when there was no answer.
        public var status: Int?
        public var error: String?

        public init(at: Int, status: Int? = nil, error: String? = nil) {
            self.at = at
            self.status = status
            self.error = error
        }
    }

    /// One notification on its way to one device.
    public struct DeliveryStatus: Codable, Sendable, Hashable {
        /// Also the `webhook-id`, the same in every attempt.
        public var delivery: String
        public var device: String
        public var uid: String
        public var state: DeliveryState
        /// Why it was dropped or is dead.
        public var reason: String?
        public var attempts: Int
        public var lastAttempt: AttemptReport?
        /// When the next attempt is due, while pending.
        public var nextAttemptAt: Int?
        public var finishedAt: Int?

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
        public static let summary = "Tells where each delivery of a notification stands"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var notification: String
        public init(notification: String) { self.notification = notification }

        public struct Result: Codable, Sendable, Hashable {
            public var notification: String
            public var createdAt: Int
            public var expiresAt: Int
            public var title: String?
            public var body: String?
            /// The trigger that made it, and the path of the change.
            public var trigger: String?
            public var path: String?
            public var deliveries: [DeliveryStatus]

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
            delivery.lastAttempt = AttemptReport(at: 1_795_000_004_000, status: 200)
            delivery.finishedAt = 1_795_000_004_120
            return RPCExample(
                Status(notification: "ntf_4c7d1e9a2b6f8035"),
                Result(
                    notification: "ntf_4c7d1e9a2b6f8035", createdAt: 1_795_000_000_000, expiresAt: 1_795_086_400_000,
                    deliveries: [delivery]))
        }()
    }

    /// What the feed of one database was read up to.
    public struct CursorStatus: Codable, Sendable, Hashable {
        public var database: String
        public var version: Int
        public var epoch: String?
        public var following: Bool
        /// How often changes were no longer kept when the notifier came for them.
        public var gaps: Int
        /// Why the feed is not followed at this moment.
        public var error: String?

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
            "Counts what waits in the outbox now and what was delivered and dropped since the service started, "
            + "and tells how far the feeds were read"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public init() {}

        public struct Result: Codable, Sendable, Hashable {
            /// Deliveries that wait or are being attempted.
            public var pending: Int
            public var leased: Int
            public var dead: Int
            /// Since the process started: a restart begins at 0, also when deliveries from before are told by
            /// `notifier.status`.
            public var delivered: Int
            /// Since the process started, like `delivered`.
            public var dropped: Int
            /// Changes that triggers fired for, since the process started, without what they ask for: their commits were
            /// too big to tell what had been there before.
            public var incomplete: Int
            /// When the first of the deliveries that wait is due; absent when none waits. Those that are being attempted
            /// wait for nothing.
            public var nextDueAt: Int?
            public var cursors: [CursorStatus]

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
