extension Notifier {
    /// A topic and how many users it has.
    public struct Topic: FieldObject, Hashable {
        public var topic: String
        public var users: Int?

        public static let fields = Fields<Self>(
            blank: Self(topic: ""),
            .required("topic", \.topic, "The name of the topic"),
            .optional("users", \.users, "The number of users that are subscribed; for administrators only"))

        public init(topic: String, users: Int? = nil) {
            self.topic = topic
            self.users = users
        }
    }
}

extension Notifier.Topics {
    /// Subscribes the caller to a topic: all devices of the user, those registered later too.
    public struct Subscribe: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.topics.subscribe"
        public static let summary = """
            Subscribes the caller to a topic, with all devices, of whatever platform and whenever registered. A \
            topic exists while it has a user; any user may subscribe to any topic. Without effect if the user is \
            subscribed. A user has at most 1,000 topics (`too_many_topics`)
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var topic: String
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(topic: ""),
            .required("topic", \.topic, "The name of the topic: 1 to 256 bytes without control characters"),
            .optional(
                "uid", \.uid,
                "The user: required with the administrator key; a user may only give the own uid", example: "u1"))

        public init(topic: String, uid: String? = nil) {
            self.topic = topic
            self.uid = uid
        }

        public static let example = RPCExample(Subscribe(topic: "news"), Empty())
    }

    public struct Unsubscribe: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.topics.unsubscribe"
        public static let summary = """
            Ends the subscription of the caller to a topic. Without effect if the user is not subscribed. What was \
            accepted for the user before is delivered
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var topic: String
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(topic: ""),
            .required("topic", \.topic, "The name of the topic: 1 to 256 bytes without control characters"),
            .optional(
                "uid", \.uid,
                "The user: required with the administrator key; a user may only give the own uid", example: "u1"))

        public init(topic: String, uid: String? = nil) {
            self.topic = topic
            self.uid = uid
        }

        public static let example = RPCExample(Unsubscribe(topic: "news"), Empty())
    }

    /// Lists the topics of a user; for administrators also all topics, and the users of one.
    public struct List: RPCRequest {
        public static let method = "notifier.topics.list"
        public static let summary = """
            Lists the topics of the caller in the order of their names. Administrators list the topics of `uid`, the \
            users of `topic`, or without both all topics
            """
        public static let access = Access.signedIn
        public static let effect = Effect.read

        public var topic: String?
        public var uid: String?
        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "topic", \.topic, "The topic whose users are listed: administrators only, and not beside `uid`",
                example: "news"),
            .optional(
                "uid", \.uid, "The user whose topics are listed; a user may only give the own uid", example: "u1"),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent", example: "news"),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 100 when absent", example: 100))

        public init(topic: String? = nil, uid: String? = nil, after: String? = nil, limit: Int? = nil) {
            self.topic = topic
            self.uid = uid
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var topics: [Notifier.Topic]
            public var uids: [String]?
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(topics: []),
                .required("topics", \.topics, "The topics of the page; with `topic` that one"),
                .optional("uids", \.uids, "With `topic`: its users, of this page"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(topics: [Notifier.Topic], uids: [String]? = nil, after: String? = nil) {
                self.topics = topics
                self.uids = uids
                self.after = after
            }
        }

        public static let example = RPCExample(List(), Result(topics: [Notifier.Topic(topic: "news")]))
    }
}
