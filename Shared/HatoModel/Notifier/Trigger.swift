extension Notifier {
    /// The texts that a person sees. In triggers both are templates: `{after.senderName}さんからのメッセージ`.
    public struct NotificationText: FieldObject, Hashable {
        public var title: String?
        public var body: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "title", \.title,
                "The title, at most 1,024 bytes of UTF-8; a template where a trigger is set, whose longer texts are cut"
            ),
            .optional(
                "body", \.body,
                "The text, at most 4,096 bytes of UTF-8; a template where a trigger is set, whose longer texts are cut")
        )

        public init(title: String? = nil, body: String? = nil) {
            self.title = title
            self.body = body
        }
    }

    /// Options of the delivery of a notification.
    public struct DeliveryOptions: FieldObject, Hashable {
        public var ttlSeconds: Int?
        public var collapseKey: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "ttlSeconds", \.ttlSeconds,
                "How long it is worth delivering, at most 2,419,200 (28 days); 86,400 (24 hours) when absent"),
            .optional(
                "collapseKey", \.collapseKey,
                "At most 256 bytes; a newer notification with the same key replaces one that was not sent yet; "
                    + "of a trigger a template"))

        public init(ttlSeconds: Int? = nil, collapseKey: String? = nil) {
            self.ttlSeconds = ttlSeconds
            self.collapseKey = collapseKey
        }
    }

    /// The kind of a change.
    public enum ChangeType: String, FieldChoice {
        case created
        case updated
        case deleted
    }

    /// The users that a trigger notifies: exactly one of the members.
    public struct Recipients: FieldObject, Hashable {
        public var uids: [String]?
        public var uidsAt: String?
        public var uidField: String?
        public var tokenField: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("uids", \.uids, "These users, at most 1,000; exactly one of the members is given"),
            .optional(
                "uidsAt", \.uidsAt,
                "A path whose child keys are uids, of which 100,000 are read; `{chat}` stands for what the pattern matched"
            ),
            .optional("uidField", \.uidField, "A field of the change that holds a uid, e.g. `after.to`"),
            .optional(
                "tokenField", \.tokenField,
                "A field of the change that holds a token of `apns` or `fcm`; rejected while these are not "
                    + "served"))

        private init() {}

        public init(uids: [String]) { self.uids = uids }
        public init(uidsAt: String) { self.uidsAt = uidsAt }
        public init(uidField: String) { self.uidField = uidField }
        public init(tokenField: String) { self.tokenField = tokenField }
    }

    /// Turns changes at paths of a pattern into notifications.
    public struct Trigger: FieldObject, Hashable {
        public var id: String
        public var database: String
        public var pattern: FeedPattern
        public var on: [ChangeType]
        public var recipients: Recipients
        public var notification: NotificationText
        public var data: [String: String]?
        public var options: DeliveryOptions?
        public var when: String?

        public static let fields = Fields<Self>(
            blank: Self(
                id: "", database: "", pattern: FeedPattern(segments: []), on: [], recipients: Recipients.fields.blank,
                notification: NotificationText.fields.blank),
            .required("id", \.id, "The id of the trigger, at most 256 bytes"),
            .required("database", \.database, "The database whose changes fire it"),
            .required("pattern", \.pattern, "The paths whose changes fire it, e.g. `/chats/{chat}/messages/{id}`"),
            .required("on", \.on, "The kinds of change that fire it"),
            .required("recipients", \.recipients, "The users it notifies; never the author of the change"),
            .required("notification", \.notification, "What a person sees; templates such as `{after.text}`"),
            .optional(
                "data", \.data,
                "For the receiving app; the values are templates, names and values together at most 4,096 bytes"),
            .optional("options", \.options, "How notifications are delivered"),
            .optional(
                "when", \.when,
                "A condition on the change, an expression of the rules language over `after`, `before`, `path`, "
                    + "`type`, `uid` (the author) and the names of the pattern, e.g. `after.kind == 'text' && chat != "
                    + "'lobby'`"))
    }
}

extension Notifier.Triggers {
    /// Sets a trigger, or replaces the one with this id. It applies to later writes; a replaced trigger with the same
    /// database and pattern misses nothing in between. The author of a write is never notified of it.
    public struct Set: RPCRequest {
        public static let method = "notifier.triggers.set"
        public static let summary = "Sets a trigger that turns changes at paths of a pattern into notifications"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String
        public var database: String?
        public var pattern: FeedPattern
        public var on: [Notifier.ChangeType]
        public var recipients: Notifier.Recipients
        public var notification: Notifier.NotificationText
        public var data: [String: String]?
        public var options: Notifier.DeliveryOptions?
        public var when: String?

        public static let fields = Fields<Self>(
            blank: Self(
                id: "", pattern: FeedPattern(segments: []), recipients: Notifier.Recipients.fields.blank,
                notification: Notifier.NotificationText.fields.blank),
            .required("id", \.id, "The id of the trigger, at most 256 bytes"),
            .optional(
                "database", \.database, "The database whose changes fire it; `default` when absent", example: "default"),
            .required("pattern", \.pattern, "The paths whose changes fire it, e.g. `/chats/{chat}/messages/{id}`"),
            .required("on", \.on, "The kinds of change that fire it"),
            .required("recipients", \.recipients, "The users it notifies; never the author of the change"),
            .required("notification", \.notification, "What a person sees; templates such as `{after.text}`"),
            .optional(
                "data", \.data,
                "For the receiving app; the values are templates, names and values together at most 4,096 bytes",
                example: ["chat": "{chat}"]),
            .optional(
                "options", \.options, "How notifications are delivered",
                example: Notifier.DeliveryOptions(ttlSeconds: 3600)),
            .optional(
                "when", \.when,
                "A condition on the change, an expression of the rules language over `after`, `before`, `path`, "
                    + "`type`, `uid` (the author) and the names of the pattern, e.g. `after.kind == 'text' && chat != "
                    + "'lobby'`. A condition that cannot be evaluated does not hold; one that needs what was before "
                    + "in a commit too big to keep it does"))

        public init(
            id: String, pattern: FeedPattern, recipients: Notifier.Recipients, notification: Notifier.NotificationText
        ) {
            self.id = id
            self.pattern = pattern
            on = [.created]
            self.recipients = recipients
            self.notification = notification
        }

        /// The trigger to set.
        public var trigger: Notifier.Trigger {
            Notifier.Trigger(
                id: id, database: database ?? "default", pattern: pattern, on: on, recipients: recipients,
                notification: notification, data: data, options: options, when: when)
        }

        public struct Result: FieldObject, Hashable {
            public var created: Bool

            public static let fields = Fields<Self>(
                blank: Self(created: false),
                .required("created", \.created, "False when it replaced a trigger"))
            public init(created: Bool) { self.created = created }
        }

        public static let example: RPCExample<Set> = {
            var request = Set(
                id: "chat-message", pattern: "/chats/{chat}/messages/{id}",
                recipients: .init(uidsAt: "/chats/{chat}/members"),
                notification: .init(title: "{after.senderName}さんからのメッセージ", body: "{after.text}"))
            request.when = "after.text != null && chat != 'lobby'"
            return RPCExample(request, Result(created: true))
        }()
    }

    public struct List: RPCRequest {
        public static let method = "notifier.triggers.list"
        public static let summary = "Lists the triggers, in the order of their ids"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var triggers: [Notifier.Trigger]

            public static let fields = Fields<Self>(
                blank: Self(triggers: []),
                .required("triggers", \.triggers, "The triggers in the order of their ids"))
            public init(triggers: [Notifier.Trigger]) { self.triggers = triggers }
        }

        public static let example = RPCExample(List(), Result(triggers: [Set.example.request.trigger]))
    }

    public struct Remove: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.triggers.remove"
        public static let summary = "Removes a trigger; what it has accepted is still delivered"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String

        public static let fields = Fields<Self>(
            blank: Self(id: ""),
            .required("id", \.id, "The id of the trigger, at most 256 bytes"))
        public init(id: String) { self.id = id }

        public static let example = RPCExample(Remove(id: "chat-message"), Empty())
    }

    /// Evaluates a trigger for a change; writes and sends nothing.
    public struct Test: RPCRequest {
        public static let method = "notifier.triggers.test"
        public static let summary = "Shows what a trigger would send for a change; sends nothing"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public var id: String
        public var path: TreePath
        public var type: Notifier.ChangeType
        public var before: JSONValue?
        public var after: JSONValue?
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(id: "", path: .root),
            .required("id", \.id, "The id of the trigger, at most 256 bytes"),
            .required("path", \.path, "The path of the change"),
            .required("type", \.type, "The kind of change"),
            .optionalJSON("before", \.before, "The value before the change", example: ["text": "a"]),
            .optionalJSON("after", \.after, "The value after the change"),
            .optional("uid", \.uid, "The author of the change", example: "masuo"))

        public init(id: String, path: TreePath, type: Notifier.ChangeType = .created, after: JSONValue? = nil) {
            self.id = id
            self.path = path
            self.type = type
            self.after = after
        }

        public struct Result: FieldObject, Hashable {
            public var matches: Bool
            public var params: [String: String]?
            public var recipients: [String]?
            public var devices: Int?
            public var notification: Notifier.NotificationText?
            public var data: [String: String]?
            public var collapseKey: String?

            public static let fields = Fields<Self>(
                blank: Self(matches: false),
                .required(
                    "matches", \.matches,
                    "Whether pattern and type match and `when` holds; otherwise nothing else is present"),
                .optional("params", \.params, "The keys that the wildcards of the pattern stand for"),
                .optional("recipients", \.recipients, "The uids of the recipients"),
                .optional("devices", \.devices, "How many devices would get it"),
                .optional("notification", \.notification, "What a person would see"),
                .optional("data", \.data, "What the receiving app would get"),
                .optional("collapseKey", \.collapseKey, "The collapse key"))

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
            return RPCExample(request, result)
        }()
    }
}
