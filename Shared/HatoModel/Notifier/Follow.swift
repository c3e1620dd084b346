extension Notifier {
    /// Follows what happens to notifications. Positions grow; a follower resumes with the last one and its epoch.
    public struct Follow: RPCRequest {
        public static let method = "notifier.follow"
        public static let summary = "Follows what becomes of notifications, from now or from a position"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        /// Send what came after this position; 0: from the oldest kept; absent: from now.
        public var after: Int?
        public var epoch: String?

        public init(after: Int? = nil, epoch: String? = nil) {
            self.after = after
            self.epoch = epoch
        }

        public struct Result: Codable, Sendable, Hashable {
            public var subscription: String
            public var epoch: String

            public init(subscription: String, epoch: String) {
                self.subscription = subscription
                self.epoch = epoch
            }
        }

        public static let example = RPCExample(
            Follow(after: 0), Result(subscription: "s1", epoch: "0123456789abcdef0123456789abcdef"))
    }

    public struct Unfollow: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.unfollow"
        public static let summary = "Ends a subscription of notifier.follow"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true

        public var subscription: String
        public init(subscription: String) { self.subscription = subscription }

        public static let example = RPCExample(Unfollow(subscription: "s1"), Empty())
    }

    public enum EventType: String, Codable, Sendable, Hashable, CaseIterable {
        /// A notification is durable.
        case accepted
        /// A device's receiver took it.
        case delivered
        case dropped
        case dead
    }

    /// What happened to a notification (`accepted`) or to one delivery of it.
    public struct Event: RPCNotification {
        public static let method = "notifier.event"
        public static let summary = "What happened to a notification, or to one delivery of it"

        public var subscription: String
        public var position: Int
        public var epoch: String
        public var time: Int
        public var type: EventType
        public var notification: String
        /// With `accepted`: how many deliveries it has.
        public var recipients: Int?
        public var trigger: String?
        public var path: String?
        /// With the other types: which delivery.
        public var delivery: String?
        public var device: String?
        public var uid: String?
        public var reason: String?

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
                subscription: "s1", position: 44_040_192, epoch: "0123456789abcdef0123456789abcdef",
                time: 1_795_000_004_120, type: .delivered, notification: "ntf_4c7d1e9a2b6f8035")
            event.delivery = "ntf_4c7d1e9a2b6f8035-0"
            event.device = "dev_8s2k1c9d0f4g7h3j"
            event.uid = "u1"
            return event
        }()
    }
}

extension Notifier {
    /// A follower ended without being asked to: `permission_denied`, `token_expired`, `compacted`, `stopping`.
    public struct Cancelled: RPCNotification {
        public static let method = "notifier.cancelled"
        public static let summary = "A follower ended without being asked to"

        public var subscription: String
        public var reason: String

        public init(subscription: String, reason: String) {
            self.subscription = subscription
            self.reason = reason
        }

        public static let example = Cancelled(subscription: "1", reason: "token_expired")
    }

    /// Writes a copy of the store under the service's `--backup-dir`, and nowhere else.
    public struct Backup: RPCRequest {
        public static let method = "notifier.backup"
        public static let summary = "Writes a copy of the store under the service's backup folder"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public static let isSlow = true

        public var name: BackupName

        public init(name: BackupName) { self.name = name }

        public typealias Result = BackupResult

        public static let example = RPCExample(Backup(name: .example), BackupResult.example)
    }
}

extension Notifier.Dead {
    /// A delivery that was given up.
    public struct Letter: Codable, Sendable, Hashable {
        public var delivery: String
        public var notification: String
        public var device: String
        public var uid: String
        public var title: String?
        public var diedAt: Int
        public var reason: String
        public var attempts: Int
        public var lastAttempt: Notifier.AttemptReport?

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
        public static let summary = "Lists deliveries that were given up, oldest first"
        public static let access = Access.administrator
        public static let effect = Effect.read

        /// What the page before answered.
        public var after: String?
        public var limit: Int?

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: Codable, Sendable, Hashable {
            public var dead: [Letter]
            /// Present when there may be more: ask again with it.
            public var after: String?

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
                    reason: "attempts_exhausted", attempts: 12)
            ]))
    }

    /// Puts dead deliveries back in the outbox, with all attempts and a new time to live.
    public struct Replay: RPCRequest {
        public static let method = "notifier.dead.replay"
        public static let summary = "Puts dead deliveries back in the outbox: those named, or all"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var deliveries: [String]?
        public var all: Bool?

        public init(deliveries: [String]? = nil, all: Bool? = nil) {
            self.deliveries = deliveries
            self.all = all
        }

        public struct Result: Codable, Sendable, Hashable {
            public var replayed: Int
            public init(replayed: Int) { self.replayed = replayed }
        }

        public static let example = RPCExample(Replay(deliveries: ["ntf_4c7d1e9a2b6f8035-0"]), Result(replayed: 1))
    }

    public struct Drop: RPCRequest {
        public static let method = "notifier.dead.drop"
        public static let summary = "Forgets dead deliveries: those named, or all"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var deliveries: [String]?
        public var all: Bool?

        public init(deliveries: [String]? = nil, all: Bool? = nil) {
            self.deliveries = deliveries
            self.all = all
        }

        public struct Result: Codable, Sendable, Hashable {
            public var dropped: Int
            public init(dropped: Int) { self.dropped = dropped }
        }

        public static let example = RPCExample(Drop(all: true), Result(dropped: 3))
    }
}
