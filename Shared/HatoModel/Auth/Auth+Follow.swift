extension Auth {
    /// Follows the changes of accounts, sessions and signing keys. Positions grow; a follower resumes with its last
    /// position and the epoch.
    public struct Follow: RPCRequest {
        public static let method = "auth.follow"
        public static let summary = """
            Follows the changes of accounts, sessions and signing keys from now on, or after a given position. \
            At most `followers-max` followers, a quarter of them of one connection (`too_many_followers`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static let hasSideEffect = true
        public typealias Result = FollowResult

        public var after: Int?
        public var epoch: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after,
                """
                The `position` of the last event received: sends later ones; only later events when absent. \
                0: from the oldest kept one (7 days). If it is older than that: failed_precondition \
                `compacted` with `data.oldest`; then read all accounts with `auth.users.list`
                """),
            .optional(
                "epoch", \.epoch,
                """
                The `epoch` that `after` comes from; if the store has another one, failed_precondition \
                `unknown_version`. Without it, a position of before a restored backup is not noticed
                """, example: "0123456789abcdef0123456789abcdef"))

        public init(after: Int? = nil, epoch: String? = nil) {
            self.after = after
            self.epoch = epoch
        }

        public static let example = RPCExample(
            Follow(after: 0),
            Result(
                subscription: "1k8f3q-1", epoch: "0123456789abcdef0123456789abcdef", position: 1_048_575,
                time: 1_795_000_004_120))
    }

    public struct Unfollow: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.unfollow"
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

    /// The kind of a change.
    public enum EventType: String, FieldChoice {
        case created
        case updated
        case deleted
        case disabled
        case enabled
        /// ID tokens issued before a time are refused, and the sessions from before it end.
        case revoked
        /// A session ended.
        case signedOut
        /// A signing key must not be trusted any more.
        case keyRevoked
    }

    /// What other users may read of an account.
    public struct PublicProfile: FieldObject, Hashable {
        public var displayName: String?
        public var username: String?
        public var photoUrl: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("displayName", \.displayName, "The display name, as the user wrote it"),
            .optional("username", \.username, "The username"),
            .optional("photoUrl", \.photoUrl, "The address of a picture"))

        public init(displayName: String? = nil, username: String? = nil, photoUrl: String? = nil) {
            self.displayName = displayName
            self.username = username
            self.photoUrl = photoUrl
        }
    }

    /// A change of an account, of a session or of the signing keys.
    public struct Event: RPCNotification {
        public static let method = "auth.event"
        public static let summary = "A change of an account, of a session or of the signing keys"

        public var subscription: String
        public var position: Int
        public var epoch: String
        public var time: Int
        public var type: EventType
        public var uid: String?
        public var since: Int?
        public var until: Int?
        public var session: String?
        public var kid: String?
        public var profile: PublicProfile?

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", position: 0, epoch: "", time: 0, type: .created),
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
                `created`, `deleted`; `updated`: names, picture, e-mail or claims changed; `disabled`, \
                `enabled`; `revoked`: ID tokens issued before `since` are refused; `signedOut`: the session \
                `session` ended (not sent for each session of a deleted account); `keyRevoked`: tokens signed with \
                the key `kid` are refused
                """),
            .optional("uid", \.uid, "The account; absent for `keyRevoked`"),
            .optional(
                "since", \.since,
                "Of `revoked` and `deleted`: ID tokens issued before are refused, in seconds since 1970"),
            .optional(
                "until", \.until,
                """
                Of `deleted`, `disabled`, `revoked` and `signedOut`: when the last of the ID tokens that it ends has \
                expired, in milliseconds since 1970; not after `time` when none is left
                """),
            .optional("session", \.session, "Of `signedOut`: the claim `sid` of its ID tokens"),
            .optional("kid", \.kid, "Of `keyRevoked`: the id of the key"),
            .optional("profile", \.profile, "Of `created` and `updated`: what other users may read of the account"))

        public init(subscription: String, position: Int, epoch: String, time: Int, type: EventType) {
            self.subscription = subscription
            self.position = position
            self.epoch = epoch
            self.time = time
            self.type = type
        }

        public static let example: Event = {
            var event = Event(
                subscription: "1k8f3q-1", position: 44_040_192, epoch: "0123456789abcdef0123456789abcdef",
                time: 1_795_000_004_120, type: .updated)
            event.uid = "q3Vd0lYxkTg7Zb1mNc5RwEaHs2Uf"
            event.profile = PublicProfile(displayName: "マスオさん", username: "masuo")
            return event
        }()
    }

    /// The end of a follower that the client did not request.
    public struct Cancelled: RPCNotification {
        public static let method = "auth.cancelled"
        public static let summary = "The service ended a follower"

        public var subscription: String
        public var reason: String

        public static let fields = Fields<Self>(
            blank: Self(subscription: "", reason: ""),
            .required("subscription", \.subscription, "The `subscription` of the response that opened the follower"),
            .required(
                "reason", \.reason,
                """
                `permission_denied`: the connection is no longer an administrator's; `token_expired`: its \
                credential expired; `compacted`: the follower is behind the oldest kept event; `stopping`: the \
                service stops, or its store failed
                """))

        public init(subscription: String, reason: String) {
            self.subscription = subscription
            self.reason = reason
        }

        public static let example = Cancelled(subscription: "1k8f3q-1", reason: "stopping")
    }
}
