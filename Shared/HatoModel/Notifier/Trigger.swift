extension Notifier {
    /// What a person sees. In triggers both are templates: `{after.senderName}さんからのメッセージ`.
    public struct NotificationText: Codable, Sendable, Hashable {
        public var title: String?
        public var body: String?

        public init(title: String? = nil, body: String? = nil) {
            self.title = title
            self.body = body
        }
    }

    /// How a notification is delivered.
    public struct DeliveryOptions: Codable, Sendable, Hashable {
        /// How long it is worth delivering; 24 hours unless said otherwise.
        public var ttlSeconds: Int?
        /// A newer notification with the same key replaces one that was not sent yet; in triggers a template.
        public var collapseKey: String?

        public init(ttlSeconds: Int? = nil, collapseKey: String? = nil) {
            self.ttlSeconds = ttlSeconds
            self.collapseKey = collapseKey
        }
    }

    public enum ChangeType: String, Codable, Sendable, Hashable, CaseIterable {
        case created
        case updated
        case deleted
    }

    /// Who a trigger notifies: exactly one of the members.
    public struct Recipients: Codable, Sendable, Hashable {
        public var uids: [String]?
        /// A path whose child keys are uids; `{chat}` stands for what the pattern matched.
        public var uidsAt: String?
        /// A field of the change that holds a uid: `after.to`.
        public var uidField: String?
        /// A field of the change that holds a token of `apns` or `fcm`; refused by name while these are not served.
        public var tokenField: String?

        public init(uids: [String]) { self.uids = uids }
        public init(uidsAt: String) { self.uidsAt = uidsAt }
        public init(uidField: String) { self.uidField = uidField }
        public init(tokenField: String) { self.tokenField = tokenField }
    }

    /// Turns changes at paths of a pattern into notifications.
    public struct Trigger: Codable, Sendable, Hashable {
        public var id: String
        public var database: String
        public var pattern: FeedPattern
        public var on: [ChangeType]
        public var recipients: Recipients
        public var notification: NotificationText
        public var data: [String: String]?
        public var options: DeliveryOptions?
        /// What must hold of a change, as an expression of the rules language over `after`, `before`, `path`, `type`,
        /// `uid` (the author) and the names of the pattern: `after.kind == 'text' && chat != 'lobby'`.
        public var when: String?
    }
}

extension Notifier.Triggers {
    /// Sets a trigger, or replaces the one with this id. It sees what is written from now on; a replaced trigger with
    /// the same database and pattern misses nothing in between. The author of a write is never notified of it.
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
        /// What must hold of a change, as an expression of the rules language over `after`, `before`, `path`, `type`,
        /// `uid` (the author) and the names of the pattern: `after.kind == 'text' && chat != 'lobby'`. A condition that
        /// cannot be evaluated does not hold; one that asks for what was before in a commit too big to tell it does.
        public var when: String?

        public init(
            id: String, pattern: FeedPattern, recipients: Notifier.Recipients, notification: Notifier.NotificationText
        ) {
            self.id = id
            self.pattern = pattern
            on = [.created]
            self.recipients = recipients
            self.notification = notification
        }

        public var trigger: Notifier.Trigger {
            Notifier.Trigger(
                id: id, database: database ?? "default", pattern: pattern, on: on, recipients: recipients,
                notification: notification, data: data, options: options, when: when)
        }

        public struct Result: Codable, Sendable, Hashable {
            /// False when it replaced one.
            public var created: Bool
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

        public init() {}

        public struct Result: Codable, Sendable, Hashable {
            public var triggers: [Notifier.Trigger]
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
        public init(id: String) { self.id = id }

        public static let example = RPCExample(Remove(id: "chat-message"), Empty())
    }

    /// Shows what a trigger would do with a change; writes and sends nothing.
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
        /// The author of the change.
        public var uid: String?

        public init(id: String, path: TreePath, type: Notifier.ChangeType = .created, after: JSONValue? = nil) {
            self.id = id
            self.path = path
            self.type = type
            self.after = after
        }

        public struct Result: Codable, Sendable, Hashable {
            /// Whether pattern and type match and `when` holds; otherwise nothing else is present.
            public var matches: Bool
            public var params: [String: String]?
            public var recipients: [String]?
            /// How many devices would get it.
            public var devices: Int?
            public var notification: Notifier.NotificationText?
            public var data: [String: String]?
            public var collapseKey: String?

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
