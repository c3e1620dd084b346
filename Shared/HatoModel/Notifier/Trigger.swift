extension Notifier {
    /// The shown texts. In triggers both are templates: `{after.senderName}さんからのメッセージ`.
    public struct NotificationText: FieldObject, Hashable {
        public var title: String?
        public var body: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "title", \.title,
                """
                The title: at most 1,024 bytes of UTF-8, otherwise `too_big`. A longer title that a trigger \
                makes is cut
                """
            ),
            .optional(
                "body", \.body,
                """
                The body: at most 4,096 bytes of UTF-8, otherwise `too_big`. A longer body that a trigger \
                makes is cut
                """)
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
        public var priority: Priority?
        public var thread: String?
        public var sound: String?
        public var badge: Int?
        public var image: String?
        public var link: String?
        public var interruptionLevel: InterruptionLevel?
        public var summary: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "ttlSeconds", \.ttlSeconds,
                """
                Seconds after which it is no longer delivered: 1 to 2,419,200 (28 days); 86,400 (24 hours) \
                when absent. The setting `ttl-seconds-max` cuts it
                """),
            .optional(
                "collapseKey", \.collapseKey,
                """
                1 to 256 bytes: a newer notification with the same key replaces those of the same device that \
                still wait, except one that is being attempted. A template in a trigger; a longer result is \
                cut
                """),
            .optional(
                "priority", \.priority,
                "`high` when absent: shown at once; `normal`: may wait until the device is awake", example: .normal),
            .optional(
                "thread", \.thread,
                """
                1 to 256 bytes: groups the notifications of one conversation on the device, counts them for the \
                badge, and lets them be withdrawn together. Users mute it, and what is held back of it comes as one. A \
                template in a trigger
                """, example: "c1"),
            .optional(
                "sound", \.sound, "The name of a sound, 1 to 256 bytes, e.g. `default`; none is played when absent",
                example: "default"),
            .optional(
                "badge", \.badge,
                """
                The number on the app's icon, 0 to 99,999, 0 removes it. When absent, the sum of the counts of the \
                user's threads if there is a `thread`; else it stays
                """, example: 1),
            .optional(
                "image", \.image, "The https URL of an image, at most 2,048 bytes. A template in a trigger",
                example: "https://example.com/photo.jpg"),
            .optional(
                "link", \.link, "The https URL that a tap opens, at most 2,048 bytes. A template in a trigger",
                example: "https://example.com/chats/c1"),
            .optional(
                "interruptionLevel", \.interruptionLevel,
                "How much it interrupts, where the platform knows that: Apple's `interruption-level`",
                example: .timeSensitive),
            .optional(
                "summary", \.summary,
                """
                1 to 256 bytes with `{count}`: the line that comes before the body where several notifications of \
                one thread and device were held back and come as one. When absent, `新着メッセージ{count}件` on devices \
                with the language `ja`, else `{count} new messages`. No template
                """, example: "{count} new photos"))

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

    /// Turns changes at paths of a pattern into notifications.
    public struct Trigger: FieldObject, Hashable {
        public var id: String
        public var database: String
        public var pattern: FeedPattern
        public var on: [TriggerEvent]
        public var recipients: Recipients
        public var notification: NotificationText?
        public var localized: [String: NotificationText]?
        public var type: String?
        public var data: [String: String]?
        public var options: DeliveryOptions?
        public var platforms: PlatformMembers?
        public var when: String?
        public var presenceAt: String?
        public var category: String?
        public var badge: BadgeSource?
        public var withdrawOn: [WithdrawEvent]?
        public var content: ContentChoice?

        public static let fields = Fields<Self>(
            blank: Self(
                id: "", database: "", pattern: FeedPattern(segments: []), on: [], recipients: Recipients.fields.blank),
            .required("id", \.id, "The id of the trigger: 1 to 256 bytes without control characters"),
            .required("database", \.database, "The database whose changes fire it"),
            .required(
                "pattern", \.pattern,
                """
                The paths whose changes fire it, e.g. `/chats/{chat}/messages/{id}`; a name in braces matches \
                any one key. At most 32 keys, and each name once
                """),
            .required(
                "on", \.on,
                """
                The kinds of change that fire it, at least one; `written` is all three; a repeated one counts once
                """),
            .required(
                "recipients", \.recipients,
                """
                Whom it notifies, except the author of the change: one or more of `uids`, `uidsAt`, `uidsIn`, \
                `uidField`, and `tokenField` or `tokenAt`. A device that is found twice gets one delivery
                """),
            .optional(
                "notification", \.notification, "The shown text, with templates as in `notifier.triggers.set`"),
            .optional("localized", \.localized, "Texts by locale, with templates"),
            .optional("type", \.type, "The type of its notifications"),
            .optional(
                "data", \.data,
                "Values for the receiving app, with templates: strings by name"),
            .optional("options", \.options, "Options of the deliveries"),
            .optional("platforms", \.platforms, "Members of the platforms' own"),
            .optional(
                "when", \.when,
                "The condition, as in `notifier.triggers.set`"),
            .optional(
                "presenceAt", \.presenceAt, "Where a recipient is seen to be there, as in `notifier.triggers.set`"),
            .optional("category", \.category, "The category of its notifications"),
            .optional("badge", \.badge, "Where the counts of threads stand in the tree"),
            .optional("withdrawOn", \.withdrawOn, "When its notifications are withdrawn"),
            .optional("content", \.content, "Whether pushes carry what the notification says"))
    }
}

extension Notifier.Triggers {
    /// Sets a trigger, or replaces the one with this id. It applies to later writes; a replaced trigger with the same
    /// database and pattern misses nothing in between. The author of a write is never notified of it.
    public struct Set: RPCRequest {
        public static let method = "notifier.triggers.set"
        public static let summary = """
            Creates or replaces the trigger with this id. A new trigger fires for changes committed after the \
            call; a replaced one with the same `database` and `pattern` misses none. A service has at most \
            1,000 triggers (`too_many_triggers`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String
        public var database: String?
        public var pattern: FeedPattern
        public var on: [Notifier.TriggerEvent]
        public var recipients: Notifier.Recipients
        public var notification: Notifier.NotificationText?
        public var localized: [String: Notifier.NotificationText]?
        public var type: String?
        public var data: [String: String]?
        public var options: Notifier.DeliveryOptions?
        public var platforms: Notifier.PlatformMembers?
        public var when: String?
        public var presenceAt: String?
        public var category: String?
        public var badge: Notifier.BadgeSource?
        public var withdrawOn: [Notifier.WithdrawEvent]?
        public var content: Notifier.ContentChoice?

        public static let fields = Fields<Self>(
            blank: Self(
                id: "", pattern: FeedPattern(segments: []), recipients: Notifier.Recipients.fields.blank),
            .required("id", \.id, "The id of the trigger: 1 to 256 bytes without control characters"),
            .optional(
                "database", \.database, "The database whose changes fire it; `default` when absent", example: "default"),
            .required(
                "pattern", \.pattern,
                """
                The paths whose changes fire it, e.g. `/chats/{chat}/messages/{id}`; a name in braces matches \
                any one key. At most 32 keys, and each name once
                """),
            .required(
                "on", \.on,
                """
                The kinds of change that fire it, at least one; `written` is all three; a repeated one counts once
                """),
            .required(
                "recipients", \.recipients,
                """
                Whom it notifies, except the author of the change: one or more of `uids`, `uidsAt`, `uidsIn`, \
                `uidField`, and `tokenField` or `tokenAt`. A device that is found twice gets one delivery
                """),
            .optional(
                "notification", \.notification,
                """
                The shown text: a title, a body or both, with templates: `{after.a.b}` and \
                `{before.a.b}` (fields of the change), `{chat}` (a name of the pattern), `{path}`, \
                `{author.name}` (what stands at `/users/{uid}/name` of the author when the trigger fires); \
                several of them in one place, with vertical bars between, stand for the first that is not empty; \
                missing values are empty; `{{` and `}}` are braces. Nothing is sent if both are empty. \
                When absent, the text of the template of `type`
                """),
            .optional(
                "localized", \.localized,
                """
                Texts by locale, at most 32, with templates, beside `notification` or the template of `type`: a device \
                gets the text of its locale (`ja-JP`), else of its language (`ja`), else `notification`
                """,
                example: ["en": Notifier.NotificationText(title: "From {after.senderName}", body: "{after.text}")]),
            .optional(
                "type", \.type,
                """
                The type that `data` must fit (`notifier.types.set`). Refused with `invalidType` if it is not known, \
                and with `invalidData` if `data` lacks a required field or has a wrong text without templates. Nothing \
                is sent for a change that makes wrong data, and a metric counts it; an optional field that comes out \
                empty is left out
                """, example: "product_detail"),
            .optional(
                "data", \.data,
                """
                Values for the receiving app, with templates: strings by name. Names and templates have at \
                most 4,096 bytes of UTF-8 in all (`too_big`); values that templates make are cut so that names \
                and values have as many at most
                """,
                example: ["chat": "{chat}"]),
            .optional(
                "options", \.options,
                """
                Options of the deliveries. `collapseKey`, `thread`, `image` and `link` are templates; an image or \
                link that comes out as no https URL of at most 2,048 bytes is left out
                """,
                example: Notifier.DeliveryOptions(ttlSeconds: 3600)),
            .optional(
                "platforms", \.platforms,
                "Members of the platforms' own, as in `notifier.send`; they are no templates",
                example: {
                    var members = Notifier.PlatformMembers()
                    members.fcm = ["android": ["notification": ["channel_id": "messages"]]]
                    return members
                }()),
            .optional(
                "when", \.when,
                """
                A condition on the change, at most 4,096 bytes of UTF-8: an expression of the rules language \
                over `after`, `before`, `path`, `type`, `uid` (the author) and the wildcards of the pattern, \
                e.g. `after.kind == 'text' && chat != 'lobby'`. A condition that cannot be evaluated is false. \
                A condition that needs values from before a commit of more than 1 MiB, which are not kept, is \
                true
                """),
            .optional(
                "presenceAt", \.presenceAt,
                """
                The path at which something stands while a user looks at what it is about, with `{uid}` for the \
                user: a recipient for whom a value other than `false` stands there when the trigger fires is shown \
                nothing, and gets the badge only; a number is a time in milliseconds since 1970, and counts until \
                then. Unless `{uid}` is the last key, at most 1,000 recipients are looked up
                """, example: "/chats/{chat}/viewing/{uid}"),
            .optional(
                "category", \.category,
                "The category whose actions its notifications have (`notifier.categories.set`); that of `type` when absent",
                example: "CHAT"),
            .optional(
                "badge", \.badge,
                """
                Numbers in the tree that are the counts of threads: its notifications are not counted then. A number \
                that becomes 0 is a thread that was read, as in `notifier.badges.set`
                """, example: Notifier.BadgeSource(pattern: "/chats/{thread}/unread/{uid}")),
            .optional(
                "withdrawOn", \.withdrawOn,
                """
                `deleted`: when the node that fired it is deleted, by its author too, the notifications that were made \
                for it are withdrawn, as in `notifier.withdraw`
                """, example: [.deleted]),
            .optional(
                "content", \.content,
                """
                `full` when absent; `ids`: no provider gets a text, image, link or `data`, as in `notifier.send`
                """, example: .ids))

        public init(
            id: String, pattern: FeedPattern, recipients: Notifier.Recipients, notification: Notifier.NotificationText
        ) {
            self.id = id
            self.pattern = pattern
            on = [.created]
            self.recipients = recipients
            self.notification = notification
        }

        private init(id: String, pattern: FeedPattern, recipients: Notifier.Recipients) {
            self.id = id
            self.pattern = pattern
            on = [.created]
            self.recipients = recipients
        }

        /// A trigger with the text of its type.
        public init(id: String, pattern: FeedPattern, recipients: Notifier.Recipients, type: String) {
            self.id = id
            self.pattern = pattern
            on = [.created]
            self.recipients = recipients
            self.type = type
        }

        /// The trigger to set.
        public var trigger: Notifier.Trigger {
            Notifier.Trigger(
                id: id, database: database ?? "default", pattern: pattern, on: on, recipients: recipients,
                notification: notification, localized: localized, type: type, data: data, options: options,
                platforms: platforms, when: when, presenceAt: presenceAt, category: category, badge: badge,
                withdrawOn: withdrawOn, content: content)
        }

        public struct Result: FieldObject, Hashable {
            public var created: Bool

            public static let fields = Fields<Self>(
                blank: Self(created: false),
                .required("created", \.created, "True for a new trigger, false for a replaced one"))
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
        public static let summary = "Removes a trigger; notifications it has already created are still delivered"
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String

        public static let fields = Fields<Self>(
            blank: Self(id: ""),
            .required("id", \.id, "The id of the trigger: 1 to 256 bytes without control characters"))
        public init(id: String) { self.id = id }

        public static let example = RPCExample(Remove(id: "chat-message"), Empty())
    }
}
