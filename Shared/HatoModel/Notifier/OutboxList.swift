extension Notifier {
    /// Whether a push carries what the notification says.
    public enum ContentChoice: String, FieldChoice {
        case full
        /// The id of the notification alone: no provider learns what it says.
        case ids
    }

    /// How far the deliveries of a notification are made.
    public struct FanOut: FieldObject, Hashable {
        public var done: Int
        public var total: Int
        public var deliveries: Int

        public static let fields = Fields<Self>(
            blank: Self(done: 0, total: 0, deliveries: 0),
            .required("done", \.done, "The number of users, or devices that were named, whose deliveries are made"),
            .required(
                "total", \.total,
                """
                The number of users, or devices that were named, when it was accepted. Of a topic, `done` may come to \
                more or less, since users come and go
                """),
            .required("deliveries", \.deliveries, "The number of deliveries that are made"))

        public init(done: Int, total: Int, deliveries: Int) {
            self.done = done
            self.total = total
            self.deliveries = deliveries
        }
    }
}

extension Notifier.Outbox {
    /// Lists deliveries that are kept, the newest first.
    public struct List: RPCRequest {
        public static let method = "notifier.outbox.list"
        public static let summary = """
            Lists deliveries that are kept, the newest first as far as an index gives their order. A call looks at \
            10,000 deliveries at most: a page may have few entries or none and still an `after`
            """
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var uid: String?
        public var device: String?
        public var state: Notifier.DeliveryState?
        public var trigger: String?
        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid, "Only deliveries to devices of this user, and webhooks of its actions", example: "u1"),
            .optional("device", \.device, "Only deliveries to this device", example: "dev_8s2k1c9d0f4g7h3j"),
            .optional(
                "state", \.state,
                """
                Only deliveries in this state; found fast are `dead`, `leased`, and `pending` with `uid` or \
                `device`
                """, example: .pending),
            .optional(
                "trigger", \.trigger, "Only deliveries of notifications that this trigger made", example: "chat-message"
            ),
            .optional(
                "after", \.after,
                "The `after` of the previous page with the same parameters; the first page when absent",
                example: "dm50Zl8"),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 100 when absent", example: 100))

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var deliveries: [Notifier.DeliveryStatus]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(deliveries: []),
                .required("deliveries", \.deliveries, "The deliveries of the page"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(deliveries: [Notifier.DeliveryStatus], after: String? = nil) {
                self.deliveries = deliveries
                self.after = after
            }
        }

        public static let example: RPCExample<List> = {
            var request = List()
            request.uid = "u1"
            var delivery = Notifier.DeliveryStatus(
                delivery: "ntf_4c7d1e9a2b6f8035-0", device: "dev_8s2k1c9d0f4g7h3j", uid: "u1", state: .pending,
                attempts: 1)
            delivery.nextAttemptAt = 1_795_000_004_120
            return RPCExample(request, Result(deliveries: [delivery]))
        }()
    }
}
