extension Notifier {
    /// Nodes of the tree whose numbers are the counts of threads.
    public struct BadgeSource: FieldObject, Hashable {
        public var pattern: FeedPattern

        public static let fields = Fields<Self>(
            blank: Self(pattern: FeedPattern(segments: [])),
            .required(
                "pattern", \.pattern,
                """
                The paths of the numbers, with `{thread}` and `{uid}`, e.g. `/chats/{thread}/unread/{uid}`: what is \
                there is the count of the thread `{thread}` of the user `{uid}`, 0 where no number is, at most 99,999
                """))

        public init(pattern: FeedPattern) { self.pattern = pattern }
    }
}

extension Notifier.Badges {
    /// Returns the number on a user's icon, and what it is the sum of.
    public struct Get: RPCRequest {
        public static let method = "notifier.badges.get"
        public static let summary = """
            Returns the badge of the caller, and the counts of threads that it is the sum of. A user has at most 1,000 \
            threads: beyond, the count that has not changed for the longest time goes
            """
        public static let access = Access.signedIn
        public static let effect = Effect.read

        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid,
                "The user: required with the administrator key; a user may only give the own uid", example: "u1"))

        public init(uid: String? = nil) { self.uid = uid }

        public struct Result: FieldObject, Hashable {
            public var badge: Int
            public var threads: [String: Int]

            public static let fields = Fields<Self>(
                blank: Self(badge: 0, threads: [:]),
                .required("badge", \.badge, "The sum of the counts, as pushes carry it: at most 99,999"),
                .required("threads", \.threads, "The counts that are not 0, by thread"))

            public init(badge: Int, threads: [String: Int]) {
                self.badge = badge
                self.threads = threads
            }
        }

        public static let example = RPCExample(Get(), Result(badge: 4, threads: ["c1": 3, "c2": 1]))
    }

    /// Sets the count of a thread, as when it was read on one of the user's devices.
    public struct Set: RPCRequest {
        public static let method = "notifier.badges.set"
        public static let summary = """
            Sets the count of a thread of the caller, or reads all threads. A count that falls sends a silent push with \
            the new badge to the user's devices; one that becomes 0 also drops what waits of the thread \
            (`withdrawn`) and lets the devices remove what they show of it
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var thread: String?
        public var count: Int
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(count: 0),
            .optional(
                "thread", \.thread,
                "The thread, 1 to 256 bytes: `options.thread` of its notifications. When absent, all threads of the user",
                example: "c1"),
            .required("count", \.count, "How many are unread, 0 to 99,999; 0 without `thread`"),
            .optional(
                "uid", \.uid,
                "The user: required with the administrator key; a user may only give the own uid", example: "u1"))

        public init(thread: String? = nil, count: Int, uid: String? = nil) {
            self.thread = thread
            self.count = count
            self.uid = uid
        }

        public struct Result: FieldObject, Hashable {
            public var badge: Int

            public static let fields = Fields<Self>(
                blank: Self(badge: 0),
                .required("badge", \.badge, "The sum of the counts after the call, at most 99,999"))

            public init(badge: Int) { self.badge = badge }
        }

        public static let example = RPCExample(Set(thread: "c1", count: 0), Result(badge: 1))
    }
}
