extension Notifier {
    /// The kinds of change that fire a trigger.
    public enum TriggerEvent: String, FieldChoice {
        case created
        case updated
        case deleted
        /// All three.
        case written

        /// Whether a change of this kind is meant.
        public func includes(_ type: ChangeType) -> Bool { self == .written || rawValue == type.rawValue }
    }

    /// What a trigger notifies: users, and tokens that need no registered device. One or more of the members.
    public struct Recipients: FieldObject, Hashable {
        public var uids: [String]?
        public var uidsAt: String?
        public var uidsIn: String?
        public var uidField: String?
        public var tokenField: String?
        public var tokenAt: String?
        public var platform: Platform?
        public var app: String?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional("uids", \.uids, "The uids, 1 to 1,000"),
            .optional(
                "uidsAt", \.uidsAt,
                """
                The path of a node whose keys are the uids, at most 100,000, e.g. `/chats/{chat}/members`; \
                `{chat}` is replaced by the key that the pattern matched
                """
            ),
            .optional(
                "uidsIn", \.uidsIn,
                """
                The path of a node whose values are the uids, at most 1,000, e.g. `/chats/{chat}/ids`; values that \
                are no texts are passed over
                """),
            .optional(
                "uidField", \.uidField,
                """
                The field of the change whose value is the uid, e.g. `after.to`. A number or boolean counts as \
                its JSON text; no user is notified if the field is missing, an object, or longer than 512 bytes
                """),
            .optional(
                "tokenField", \.tokenField,
                """
                The field of the change whose value is a token of `platform`, e.g. `after.receiver_fcm_token`. A \
                token without a device gets one without a user. One that is no valid token, or that a device of \
                the author has, is left out
                """),
            .optional(
                "tokenAt", \.tokenAt,
                """
                The path of a token of `platform` for each uid that the other members name, at most 1,000 of them; \
                `{uid}` is the uid, e.g. `/users/{uid}/fcm_token`. It is notified besides the devices of the user, \
                and once if one of them has it. The token that stands there for the author is left out
                """),
            .optional("platform", \.platform, "Of the tokens: `apns` or `fcm`; given with them and only with them"),
            .optional("app", \.app, "Of the tokens: the app they belong to; `default` when absent"))

        private init() {}

        public init(uids: [String]) { self.uids = uids }
        public init(uidsAt: String) { self.uidsAt = uidsAt }
        public init(uidsIn: String) { self.uidsIn = uidsIn }
        public init(uidField: String) { self.uidField = uidField }
        /// The token that the change itself holds.
        public init(tokenField: String, platform: Platform?) {
            self.tokenField = tokenField
            self.platform = platform
        }
    }

    /// A token that is named in place of a device.
    public struct NamedToken: FieldObject, Hashable {
        public var platform: Platform
        public var app: String?
        public var token: String

        public static let fields = Fields<Self>(
            blank: Self(platform: .fcm, token: ""),
            .required("platform", \.platform, "`apns` or `fcm`", example: .fcm),
            .optional("app", \.app, "The app that the token belongs to; `default` when absent", example: "default"),
            .required("token", \.token, "The token, as the platform gives it", example: "cYz1:APA91bE0"))

        public init(platform: Platform, token: String, app: String? = nil) {
            self.platform = platform
            self.token = token
            self.app = app
        }
    }
}
