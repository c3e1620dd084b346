/// The result of `auth.follow` and `notifier.follow`.
public struct FollowResult: FieldObject, Hashable {
    public var subscription: String
    public var epoch: String
    public var position: Int
    public var time: Int

    public static let fields = Fields<Self>(
        blank: Self(subscription: "", epoch: "", position: 0, time: 0),
        .required(
            "subscription", \.subscription,
            """
            The id of the follower, unique on this connection: its events name it, and the `.unfollow` that ends it
            """),
        .required(
            "epoch", \.epoch,
            """
            The epoch of the store: positions are comparable only within one epoch; it changes when a \
            backup is restored. 32 hexadecimal digits
            """),
        .required("position", \.position, "Where it begins: events of later positions are sent"),
        .required("time", \.time, "The clock of the service, in milliseconds since 1970"))

    public init(subscription: String, epoch: String, position: Int, time: Int) {
        self.subscription = subscription
        self.epoch = epoch
        self.position = position
        self.time = time
    }
}

extension [MethodError] {
    /// Of `auth.follow` and `notifier.follow`.
    static let follow = [
        MethodError(.failedPrecondition, "compacted", data: ["oldest"]),
        MethodError(.failedPrecondition, "unknown_version"),
        MethodError(.resourceExhausted, "too_many_followers"),
        MethodError(.invalidArgument, "invalid_position", "invalid_epoch"),
    ]

    /// Of the methods that end a follower.
    static let unfollow = [MethodError(.notFound, "subscription_not_found")]
}
