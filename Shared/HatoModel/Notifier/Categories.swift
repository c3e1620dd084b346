extension Notifier {
    /// A text in one language, or in several by locale.
    public struct LocalizedText: FieldValue, Hashable {
        /// The texts by locale; empty for a text that is the same everywhere.
        public private(set) var byLocale: [String: String]
        /// The text of devices whose locale has none: the one text, else that of `en`, else the first in the order of
        /// locales; empty without any.
        public private(set) var fallback: String

        /// The same text for every locale.
        public init(_ text: String) { (byLocale, fallback) = ([:], text) }

        /// A text for each locale.
        public init(_ texts: [String: String]) {
            byLocale = texts
            fallback = texts["en"] ?? texts.min { $0.key < $1.key }?.value ?? ""
        }

        public static var schema: JSONObject {
            ["anyOf": [["type": "string"], ["type": "object", "additionalProperties": ["type": "string"]]]]
        }

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            if case .string(let text) = json {
                self = Self(text)
            } else {
                let texts = try [String: String](json: json, unknown: unknown)
                guard !texts.isEmpty else {
                    throw FieldError(
                        ArgumentError(
                            reason: "invalid_localized", "A text by locale has one at least, e.g. {\"ja\": \"返信\"}"))
                }
                self = Self(texts)
            }
        }

        public var json: JSONValue { byLocale.isEmpty ? .string(fallback) : byLocale.json }
    }

    /// What an action does to the app.
    public enum ActionActivation: String, FieldChoice {
        /// Opens it.
        case foreground
        /// Works while it stays closed.
        case background
    }

    /// The field for text of an action.
    public struct ActionInput: FieldObject, Hashable {
        public var button: LocalizedText?
        public var placeholder: LocalizedText?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("button", \.button, "What the button says that sends the text; the platform's text when absent"),
            .optional("placeholder", \.placeholder, "What the empty field says"))

        public init(button: LocalizedText? = nil, placeholder: LocalizedText? = nil) {
            self.button = button
            self.placeholder = placeholder
        }
    }

    /// A write to the tree, as the user that chose the action.
    public struct EffectWrite: FieldObject, Hashable {
        public var path: String
        public var value: JSONValue
        public var database: String?

        public static let fields = Fields<Self>(
            blank: Self(path: "", value: .null),
            .required(
                "path", \.path,
                """
                Where, with the places `{uid}`, `{thread}` and `{data.x}`, each of which fills one key or a part of it
                """, example: "/chats/{thread}/messages"),
            .required(
                "value", \.value,
                """
                What, with the places `{uid}`, `{name}`, `{text}`, `{thread}` and `{data.x}` in its texts; `{{` and `}}` \
                are braces. The server value `{".sv": "timestamp"}` may stand in it, increments may not. Of `update`: \
                an object of values by path relative to `path`, whose names may have the places of a path
                """, example: ["senderId": "{uid}", "text": "{text}"]),
            .optional("database", \.database, "The database; `default` when absent", example: "default"))

        public init(path: String, value: JSONValue, database: String? = nil) {
            self.path = path
            self.value = value
            self.database = database
        }
    }

    /// What the notifier does when an action is chosen: exactly one of the members.
    public struct ActionEffect: FieldObject, Hashable {
        public var push: EffectWrite?
        public var set: EffectWrite?
        public var update: EffectWrite?
        public var read: Bool?
        public var mute: MuteDuration?
        public var webhook: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("push", \.push, "Appends a child, as `messages.push`"),
            .optional(
                "set", \.set, "Replaces a node, as `messages.set`",
                example: EffectWrite(path: "/proposals/{uid}", value: "{text}")),
            .optional(
                "update", \.update, "Replaces several nodes, as `messages.update`",
                example: EffectWrite(path: "/chats/{thread}", value: ["unread/{uid}": 0])),
            .optional(
                "read", \.read,
                """
                True: the thread of the notification counts as read, as with `notifier.badges.set` and the count 0. \
                Nothing is written to the tree
                """, example: true),
            .optional(
                "mute", \.mute,
                """
                The user mutes the thread of the notification, as with `notifier.preferences.set`: for 1 to 31,622,400 \
                seconds, or `true` for ever. A mute that lasts longer stays. Nothing is written to the tree
                """, example: .seconds(28_800)),
            .optional(
                "webhook", \.webhook,
                """
                The URL that gets a webhook of the type `notification.action`, which says what was chosen: https, port \
                443 or 8443, a host on the public internet, at most 2,048 bytes, as of a device. The effect is done \
                when the delivery is accepted: it is attempted until it expires, after 24 hours, with one `webhook-id`
                """, example: "https://example.com/hooks/actions"))

        private init() {}

        /// Appends a child.
        public init(push: EffectWrite) { self.push = push }
        /// Replaces a node.
        public init(set: EffectWrite) { self.set = set }
        /// Replaces several nodes.
        public init(update: EffectWrite) { self.update = update }
        /// Marks the thread of the notification as read.
        public static let read: Self = {
            var effect = Self()
            effect.read = true
            return effect
        }()
        /// Mutes the thread of the notification.
        public static func mute(_ duration: MuteDuration) -> Self {
            var effect = Self()
            effect.mute = duration
            return effect
        }
        /// Calls a URL.
        public static func webhook(_ url: String) -> Self {
            var effect = Self()
            effect.webhook = url
            return effect
        }
    }

    /// A button of a notification.
    public struct CategoryAction: FieldObject, Hashable {
        public var id: String
        public var title: LocalizedText
        public var activation: ActionActivation?
        public var destructive: Bool?
        public var authenticationRequired: Bool?
        public var input: ActionInput?
        public var quickReply: Int?
        public var effect: ActionEffect?

        public static let fields = Fields<Self>(
            blank: Self(id: "", title: .init("")),
            .required(
                "id", \.id,
                """
                The id of the action: 1 to 64 bytes without control characters; not `displayed`, `opened` and \
                `dismissed`, which are reports
                """, example: "REPLY"),
            .required(
                "title", \.title, "What the button says: a text, or texts by locale, each of 1 to 256 bytes",
                example: .init(["en": "Reply", "ja": "返信"])),
            .optional(
                "activation", \.activation,
                "`foreground`: opens the app; `background`, also when absent: works while it stays closed",
                example: .background),
            .optional("destructive", \.destructive, "True: it destroys something, and is shown so", example: false),
            .optional(
                "authenticationRequired", \.authenticationRequired, "True: the device must be unlocked", example: false),
            .optional(
                "input", \.input, "Present when the action takes a text",
                example: ActionInput(button: .init(["en": "Send", "ja": "送信"]))),
            .optional(
                "quickReply", \.quickReply,
                """
                0 to 5: the action stands for this quick reply of the user, which is the text of the action of this \
                category with `input`. It has no `input` and no `effect` of its own
                """, example: 0),
            .optional(
                "effect", \.effect,
                "What the notifier does when the action is chosen; nothing but the event when absent",
                example: ActionEffect(push: .init(path: "/chats/{thread}/messages", value: ["text": "{text}"]))))

        public init(id: String, title: LocalizedText) {
            self.id = id
            self.title = title
        }

        /// An action in the background with a field for text.
        public static func reply(id: String, title: LocalizedText, effect: ActionEffect?) -> Self {
            var action = Self(id: id, title: title)
            action.activation = .background
            action.input = ActionInput()
            action.effect = effect
            return action
        }
    }

    /// A set of actions, whose id a push carries.
    public struct Category: FieldObject, Hashable {
        public var id: String
        public var actions: [CategoryAction]

        public static let fields = Fields<Self>(
            blank: Self(id: "", actions: []),
            .required("id", \.id, "The id of the category: 1 to 256 bytes without control characters"),
            .required("actions", \.actions, "Its actions, in the order of the buttons"))

        public init(id: String, actions: [CategoryAction]) {
            self.id = id
            self.actions = actions
        }

        static let example = Self(
            id: "CHAT",
            actions: [
                .reply(
                    id: "REPLY", title: .init(["en": "Reply", "ja": "返信"]),
                    effect: .init(
                        push: .init(
                            path: "/chats/{thread}/messages",
                            value: ["date": [".sv": "timestamp"], "senderId": "{uid}", "text": "{text}"])))
            ])
    }
}

extension Notifier {
    /// The receiver of effects `webhook`: a device without a user, the same for all effects with its URL.
    public struct ActionReceiver: FieldObject, Hashable {
        public var url: String
        public var device: String
        public var secret: String?

        public static let fields = Fields<Self>(
            blank: Self(url: "", device: ""),
            .required("url", \.url, "The URL in its normal spelling"),
            .required(
                "device", \.device, "The id of the device, `dev_…`, e.g. for `notifier.devices.rotateSecret`"),
            .optional(
                "secret", \.secret,
                """
                The signing secret; present only if this call generated it: it cannot be read later, but replaced
                """))

        /// A receiver; `secret` is `whsec_` and base64.
        public init(url: String, device: String, secret: String? = nil) {
            (self.url, self.device, self.secret) = (url, device, secret)
        }
    }
}

extension Notifier.Categories {
    /// Sets a category.
    public struct Set: RPCRequest {
        public static let method = "notifier.categories.set"
        public static let summary = """
            Creates or replaces a category: a set of actions. Once a notification had it, its actions never change, \
            except the URLs of webhooks: others are refused (`category_used`), equal ones are not. A service has at most 256 categories, used and \
            removed ones included (`too_many_categories`)
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String
        public var actions: [Notifier.CategoryAction]

        public static let fields = Fields<Self>(
            blank: Self(.init(id: "", actions: [])),
            .required("id", \.id, "The id of the category: 1 to 256 bytes without control characters"),
            .required(
                "actions", \.actions,
                """
                Its actions, 1 to 8, in the order of the buttons; at most 16,384 bytes as JSON in all, and in each \
                language few enough to fit into a push with short texts (`too_big`)
                """))

        public init(_ category: Notifier.Category) {
            id = category.id
            actions = category.actions
        }

        /// The category to set.
        public var category: Notifier.Category { .init(id: id, actions: actions) }

        public struct Result: FieldObject, Hashable {
            public var created: Bool
            public var webhooks: [Notifier.ActionReceiver]?

            public static let fields = Fields<Self>(
                blank: Self(created: false),
                .required("created", \.created, "True for a new category, false for one that was there"),
                .optional(
                    "webhooks", \.webhooks,
                    """
                    The receivers of its effects `webhook`, each URL once. They are active from now on, if they were \
                    disabled
                    """))
            public init(created: Bool, webhooks: [Notifier.ActionReceiver]? = nil) {
                (self.created, self.webhooks) = (created, webhooks)
            }
        }

        public static let example = RPCExample(Set(.example), Result(created: true))
    }

    public struct List: RPCRequest {
        public static let method = "notifier.categories.list"
        public static let summary = "Lists the categories with their effects, in the order of their ids"
        public static let access = Access.administrator
        public static let effect = Effect.read

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var categories: [Notifier.Category]

            public static let fields = Fields<Self>(
                blank: Self(categories: []),
                .required("categories", \.categories, "The categories in the order of their ids"))
            public init(categories: [Notifier.Category]) { self.categories = categories }
        }

        public static let example = RPCExample(List(), Result(categories: [.example]))
    }

    /// What apps ask for at their start: iOS shows only actions that were registered before.
    public struct Get: RPCRequest {
        public static let method = "notifier.categories.get"
        public static let summary = """
            Returns all categories without their effects, for apps at their start; with `etag`, only when they have \
            changed
            """
        public static let access = Access.anyone
        public static let effect = Effect.read

        public var etag: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "etag", \.etag, "The `etag` of a former result: when it still holds, `categories` is absent",
                example: "5f1d0a2b9c3e4d70"))

        public init(etag: String? = nil) { self.etag = etag }

        public struct Result: FieldObject, Hashable {
            public var etag: String
            public var categories: [Notifier.Category]?

            public static let fields = Fields<Self>(
                blank: Self(etag: ""),
                .required("etag", \.etag, "Equal while the categories are"),
                .optional(
                    "categories", \.categories,
                    "The categories in the order of their ids; absent when `etag` still holds"))

            public init(etag: String, categories: [Notifier.Category]? = nil) {
                self.etag = etag
                self.categories = categories
            }
        }

        public static let example = RPCExample(
            Get(etag: "5f1d0a2b9c3e4d70"), Result(etag: "5f1d0a2b9c3e4d70"))
    }

    public struct Remove: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.categories.remove"
        public static let summary = """
            Removes a category; refused while a trigger or a type has it (`category_in_use`). Notifications that had \
            it can still be responded to
            """
        public static let access = Access.administrator
        public static let effect = Effect.write

        public var id: String

        public static let fields = Fields<Self>(
            blank: Self(id: ""), .required("id", \.id, "The id of the category"))
        public init(id: String) { self.id = id }

        public static let example = RPCExample(Remove(id: "CHAT"), Empty())
    }
}
