extension Notifier {
    /// When the notifications of a trigger are withdrawn.
    public enum WithdrawEvent: String, FieldChoice {
        /// The node that fired it is deleted.
        case deleted
    }

    /// Takes notifications back: those that wait are dropped, and devices remove those that they show.
    public struct Withdraw: RPCRequest {
        public static let method = "notifier.withdraw"
        public static let summary = """
            Withdraws a notification, or those of a thread of a user: deliveries that wait are dropped (`withdrawn`), \
            devices that may show it get a silent push with the ids to remove, and the counts of threads fall. \
            Withdrawn a second time, nothing happens
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var notification: String?
        public var uid: String?
        public var thread: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "notification", \.notification,
                "The id of the notification, `ntf_…`; exactly one of `notification`, and `uid` with `thread`"),
            .optional(
                "uid", \.uid, "The user whose notifications of `thread` are withdrawn, accepted so far", example: "u1"),
            .optional("thread", \.thread, "The thread, 1 to 256 bytes", example: "c1"))

        private init() {}

        public init(notification: String) { self.notification = notification }

        public init(uid: String, thread: String) {
            self.uid = uid
            self.thread = thread
        }

        public struct Result: FieldObject, Hashable {
            public var dropped: Int
            public var devices: Int

            public static let fields = Fields<Self>(
                blank: Self(dropped: 0, devices: 0),
                .required("dropped", \.dropped, "The number of deliveries that waited and were dropped"),
                .required("devices", \.devices, "The number of devices that get the silent push"))

            public init(dropped: Int, devices: Int) {
                self.dropped = dropped
                self.devices = devices
            }
        }

        public static let example = RPCExample(
            Withdraw(notification: "ntf_4c7d1e9a2b6f8035"), Result(dropped: 1, devices: 2))
    }
}
