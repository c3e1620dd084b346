extension Notifier {
    /// One token, or a list of tokens.
    public struct TokenChoice: FieldValue, Hashable {
        /// The tokens, in their order.
        public var tokens: [String]
        private var isList: Bool

        /// One token.
        public init(_ token: String) { (tokens, isList) = ([token], false) }
        /// A list of tokens.
        public init(_ tokens: [String]) { (self.tokens, isList) = (tokens, true) }

        public static var schema: JSONObject {
            ["anyOf": [["type": "string"], ["type": "array", "items": ["type": "string"]]]]
        }

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            if case .string(let token) = json {
                self = Self(token)
            } else {
                self = Self(try [String](json: json, unknown: unknown))
            }
        }

        public var json: JSONValue { isList ? tokens.json : .string(tokens.first ?? "") }
    }

    /// What the old call of Firebase sends.
    public struct LegacyPayload: FieldObject, Hashable {
        public var notification: Shown?
        public var data: [String: String]?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("notification", \.notification, "What is shown; nothing is when absent"),
            .optional("data", \.data, "Values for the receiving app: strings by name", example: ["room_id": "r1"]))

        public init(notification: Shown? = nil, data: [String: String]? = nil) {
            self.notification = notification
            self.data = data
        }

        /// The texts of a notification, all of them strings.
        public struct Shown: FieldObject, Hashable {
            public var title: String?
            public var body: String?
            public var badge: String?
            public var sound: String?
            public var icon: String?
            public var color: String?
            public var tag: String?
            public var clickAction: String?
            public var bodyLocKey: String?
            public var bodyLocArgs: String?
            public var titleLocKey: String?
            public var titleLocArgs: String?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("title", \.title, "The title"),
                .optional("body", \.body, "The body"),
                .optional("badge", \.badge, "The number on the app's icon, as a text of digits: 0 to 99999"),
                .optional("sound", \.sound, "The name of a sound"),
                .optional("icon", \.icon, "Android: the name of an icon", example: "ic_message"),
                .optional("color", \.color, "Android: a colour such as `#3366ff`", example: "#3366ff"),
                .optional("tag", \.tag, "Android: takes the place of a shown one with this tag", example: "room"),
                .optional(
                    "clickAction", \.clickAction,
                    "Android: what a tap does; Apple: the category; browsers: the https URL that a tap opens",
                    example: "OPEN_ROOM"),
                .optional(
                    "bodyLocKey", \.bodyLocKey, "The key of the body among the app's own texts", example: "NEW_BODY"),
                .optional(
                    "bodyLocArgs", \.bodyLocArgs, "What is filled into it: a JSON text, a list of strings",
                    example: "[\"マスオ\"]"),
                .optional(
                    "titleLocKey", \.titleLocKey, "The key of the title among the app's own texts",
                    example: "NEW_TITLE"),
                .optional(
                    "titleLocArgs", \.titleLocArgs, "What is filled into it: a JSON text, a list of strings",
                    example: "[\"マスオ\"]"))

            public init() {}
        }
    }

    /// The options of the old call of Firebase.
    public struct LegacyOptions: FieldObject, Hashable {
        public var priority: Priority?
        public var timeToLive: Int?
        public var collapseKey: String?
        public var contentAvailable: Bool?
        public var mutableContent: Bool?
        public var dryRun: Bool?
        public var restrictedPackageName: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "priority", \.priority, "`high` when absent and something is shown; otherwise `normal` when absent"),
            .optional(
                "timeToLive", \.timeToLive,
                """
                Seconds after which it is no longer delivered: 0 to 2,419,200 (28 days), which it is when absent; 0 \
                counts as 1. The setting `ttl-seconds-max` cuts it
                """,
                example: 3_600),
            .optional("collapseKey", \.collapseKey, "A newer one with this key replaces it", example: "room"),
            .optional("contentAvailable", \.contentAvailable, "Apple: wakes the app", example: true),
            .optional("mutableContent", \.mutableContent, "Apple: lets the app change it", example: true),
            .optional(
                "dryRun", \.dryRun, "True: checks everything and sends nothing; each `messageId` is `dry_run` then",
                example: true),
            .optional(
                "restrictedPackageName", \.restrictedPackageName, "Android: the package of the app",
                example: "com.example.chat"))

        public init() {}
    }

    /// The call `admin.messaging().sendToDevice(…)`, which Firebase has no more, with its parameters and its result.
    public struct SendToDevice: RPCRequest {
        public static let method = "notifier.sendToDevice"
        public static let summary = """
            Sends to FCM tokens, with the parameters and the result of Firebase's old call of this name. It \
            responds when the deliveries are durable and each had a first attempt, or after 10 seconds. A \
            `messageId` is the id of a delivery that was delivered or will be attempted again (`notifier.status` \
            has its state)
            """
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static let isSlow = true

        public var token: TokenChoice
        public var payload: LegacyPayload
        public var options: LegacyOptions?
        public var app: String?

        public static let fields = Fields<Self>(
            blank: Self(token: TokenChoice([]), payload: LegacyPayload()),
            .required("token", \.token, "One token of FCM, or a list of 1 to 1,000"),
            .required("payload", \.payload, "What is sent: `notification`, `data` or both"),
            .optional("options", \.options, "How it is sent"),
            .optional("app", \.app, "The app that the tokens belong to; `default` when absent", example: "default"))

        public init(token: TokenChoice, payload: LegacyPayload, options: LegacyOptions? = nil) {
            self.token = token
            self.payload = payload
            self.options = options
        }

        /// What became of one token.
        public struct Outcome: FieldObject, Hashable {
            public var messageId: String?
            public var error: Problem?

            public static let fields = Fields<Self>(
                blank: Self(),
                .optional("messageId", \.messageId, "The id of the delivery, `ntf_…-0`; absent beside `error`"),
                .optional("error", \.error, "Why nothing is sent to this token; absent beside `messageId`"))

            public init(messageId: String? = nil, error: Problem? = nil) {
                self.messageId = messageId
                self.error = error
            }
        }

        /// Why a token gets nothing.
        public struct Problem: FieldObject, Hashable {
            /// The codes of the old call.
            public enum Code: String, FieldChoice {
                case invalidToken = "messaging/invalid-registration-token"
                case tokenGone = "messaging/registration-token-not-registered"
                case otherProject = "messaging/mismatched-credential"
                case invalidMessage = "messaging/invalid-argument"
                case tooLarge = "messaging/payload-size-limit-exceeded"
                case unavailable = "messaging/server-unavailable"
            }

            public var code: Code
            public var message: String

            public static let fields = Fields<Self>(
                blank: Self(.unavailable, ""),
                .required(
                    "code", \.code,
                    """
                    `messaging/invalid-registration-token`: it is malformed, or FCM says that it is none; \
                    `messaging/registration-token-not-registered`: it is gone; `messaging/mismatched-credential`: \
                    it is of another Firebase project; `messaging/invalid-argument`: FCM refuses the message; \
                    `messaging/payload-size-limit-exceeded`: the message is too large; \
                    `messaging/server-unavailable`: it ended for another reason, such as `timeToLive`
                    """),
                .required("message", \.message, "The same for people"))

            public init(_ code: Code, _ message: String) {
                self.code = code
                self.message = message
            }
        }

        public struct Result: FieldObject, Hashable {
            public var results: [Outcome]
            public var successCount: Int
            public var failureCount: Int
            public var canonicalRegistrationTokenCount: Int
            public var multicastId: Int

            public static let fields = Fields<Self>(
                blank: Self(results: [], multicastId: 0),
                .required("results", \.results, "One for each token, in their order"),
                .required("successCount", \.successCount, "How many have a `messageId`"),
                .required("failureCount", \.failureCount, "How many have an `error`"),
                .required("canonicalRegistrationTokenCount", \.canonicalRegistrationTokenCount, "Always 0"),
                .required("multicastId", \.multicastId, "A number without a meaning"))

            /// Counts the results.
            public init(results: [Outcome], multicastId: Int) {
                self.results = results
                self.multicastId = multicastId
                successCount = results.count { $0.error == nil }
                failureCount = results.count { $0.error != nil }
                canonicalRegistrationTokenCount = 0
            }
        }

        public static let example: RPCExample<SendToDevice> = {
            var shown = LegacyPayload.Shown()
            (shown.title, shown.body) = ("マスオさんからのメッセージ", "ただいま")
            (shown.badge, shown.sound) = ("1", "default")
            var options = LegacyOptions()
            options.priority = .high
            return RPCExample(
                SendToDevice(token: .init("cYz1:APA91bE0"), payload: .init(notification: shown), options: options),
                Result(results: [Outcome(messageId: "ntf_4c7d1e9a2b6f8035-0")], multicastId: 4_218_533_011))
        }()
    }
}
