extension Notifier {
    /// Why a trigger sends nothing for a change.
    public enum TrialReason: String, FieldChoice {
        /// The path does not match the pattern.
        case pattern
        /// The trigger does not fire for this kind of change.
        case type
        /// Nothing stands at the path.
        case noNode = "no_node"
        /// `when` is not true.
        case condition
        /// Title and body come out empty.
        case empty
    }

    /// Why a recipient, or a device of one, gets nothing.
    public enum TrialSkip: String, FieldChoice {
        /// It is the author of the change.
        case author
        /// The user has no device.
        case noDevice = "no_device"
        /// The device is disabled.
        case disabled
        /// The token belongs to another user now.
        case otherUser = "other_user"
        /// The token is known to be gone.
        case gone
        /// The user looks at what it is about.
        case present
        /// The user wants none on this platform.
        case off
        /// The user muted the thread.
        case muted
        /// A quiet window of the user holds it until it ends.
        case quiet
        /// The app of the device has no credentials, or the push is too large even without its text.
        case notSendable = "not_sendable"
    }

    /// What one device of a recipient would get of a trigger.
    public struct TrialDelivery: FieldObject, Hashable {
        public var uid: String?
        public var device: String?
        public var platform: Platform?
        public var app: String?
        public var skipped: TrialSkip?
        public var headers: [String: String]?
        public var body: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("uid", \.uid, "The recipient; absent for a token without a user", example: "masuo"),
            .optional("device", \.device, "Its device; absent without one, and for a token that has none yet"),
            .optional("platform", \.platform, "The platform of the device"),
            .optional("app", \.app, "The app of the device"),
            .optional(
                "skipped", \.skipped,
                """
                Why nothing is sent: `author`; `no_device`: the user has none; `disabled`: the device is; `other_user`: \
                the token belongs to another user now; `gone`: the token is known to be; `present`: the user looks at \
                what it is about; `off`, `muted`: the user wants none; `quiet`: it waits for the end of a quiet window; \
                `not_sendable`: the app has no credentials, or the push is too large. Absent if it is sent
                """),
            .optional(
                "headers", \.headers,
                "The headers of the request, without what authenticates it; absent if it is not sent"),
            .optional(
                "body", \.body,
                """
                The body of the request, byte for byte but for the token, the id of the notification and the reply \
                token; that of Web Push before its encryption
                """))

        public init() {}
    }
}

extension Notifier.Triggers {
    /// Evaluates a trigger for a change; writes and sends nothing.
    public struct Test: RPCRequest {
        public static let method = "notifier.triggers.test"
        public static let summary = "Returns what a trigger would send to whom for a change; sends nothing"
        public static let access = Access.administrator
        public static let effect = Effect.read
        /// Recipients and devices that are shown.
        public static let deliveriesMax = 100

        public var id: String
        public var path: TreePath
        public var type: Notifier.ChangeType?
        public var before: JSONValue?
        public var after: JSONValue?
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(id: "", path: .root),
            .required("id", \.id, "The id of the trigger: 1 to 256 bytes without control characters"),
            .required("path", \.path, "The path of the changed node, e.g. `/chats/c1/messages/m1`"),
            .optional("type", \.type, "The kind of change; `created` if absent", example: .created),
            .optionalJSON(
                "before", \.before, "The value before the change; there was none when absent or null",
                example: ["text": "a"]),
            .optionalJSON(
                "after", \.after,
                """
                The value after the change; there is none when absent or null. With `type`, `before` and `after` \
                absent, it is what stands at `path` in the tree
                """),
            .optional("uid", \.uid, "The author of the change", example: "masuo"))

        public init(id: String, path: TreePath, type: Notifier.ChangeType? = nil, after: JSONValue? = nil) {
            self.id = id
            self.path = path
            self.type = type
            self.after = after
        }

        public struct Result: FieldObject, Hashable {
            public var matches: Bool
            public var reason: Notifier.TrialReason?
            public var params: [String: String]?
            public var recipients: [String]?
            public var devices: Int?
            public var notification: Notifier.NotificationText?
            public var data: [String: String]?
            public var collapseKey: String?
            public var deliveries: [Notifier.TrialDelivery]?

            public static let fields = Fields<Self>(
                blank: Self(matches: false),
                .required(
                    "matches", \.matches,
                    "Whether pattern and type match and `when` is true; otherwise only `reason` is present"),
                .optional(
                    "reason", \.reason,
                    """
                    Why nothing is sent to anyone: the `pattern` does not match; the trigger does not fire for this \
                    `type`; `no_node`: nothing stands at the path; the `condition` is not true; `empty`: title and body \
                    come out empty
                    """),
                .optional("params", \.params, "The keys that the wildcards of the pattern stand for"),
                .optional("recipients", \.recipients, "The uids that the trigger selects, without the author"),
                .optional(
                    "devices", \.devices,
                    """
                    The number of devices it would go to: active devices of these users, and valid tokens that are \
                    not those of the author and not known to be gone
                    """),
                .optional(
                    "notification", \.notification, "The text that would be shown; absent if nothing would be sent"),
                .optional("data", \.data, "What the receiving app would get; absent if nothing would be sent"),
                .optional(
                    "collapseKey", \.collapseKey,
                    "The collapse key that the delivery would have, 1 to 256 bytes; absent without one"),
                .optional(
                    "deliveries", \.deliveries,
                    """
                    What each device of each recipient would get, or why not, sorted by user and device: the first \
                    100; absent if nothing would be sent
                    """))

            public init(matches: Bool) { self.matches = matches }
        }

        public static let example: RPCExample<Test> = {
            let request = Test(
                id: "chat-message",
                path: TreePath(uncheckedKeys: ["chats", "c1", "messages", "m1"].map(TreeKey.init(unchecked:))),
                after: ["senderName": "マスオ", "text": "ただいま"])
            var result = Result(matches: true)
            result.params = ["chat": "c1", "id": "m1"]
            result.recipients = ["u2"]
            result.devices = 1
            result.notification = .init(title: "マスオさんからのメッセージ", body: "ただいま")
            var (author, sent) = (Notifier.TrialDelivery(), Notifier.TrialDelivery())
            (author.uid, author.skipped) = ("u1", .author)
            (sent.uid, sent.device, sent.platform, sent.app) = ("u2", "dev_1", .apns, "default")
            sent.headers = ["apns-push-type": "alert"]
            sent.body = #"{"aps":{"alert":{"title":"マスオさんからのメッセージ","body":"ただいま"}}}"#
            result.deliveries = [author, sent]
            return RPCExample(request, result)
        }()
    }
}
