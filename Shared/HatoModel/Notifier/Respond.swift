extension Notifier {
    /// What became of the effect of an action.
    public enum EffectState: String, FieldChoice {
        /// The action has none, or it is a report.
        case none
        /// Durable, and not done yet: it is tried until it is done or refused.
        case pending
        case done
        /// It will not be done: see the reason.
        case refused
    }

    /// Reports what a user did with a notification.
    public struct Respond: RPCRequest {
        public static let method = "notifier.respond"
        public static let summary = """
            Reports what a user did with a notification, with the `replyToken` of the push or an ID token. The first \
            action that a user reports counts, on whichever device: another one is refused (`already_responded`), the \
            same again gets the same response. The effect of the action is tried until it is done or refused; the call \
            waits for it for up to 10 seconds
            """
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true

        public var notification: String
        public var action: String?
        public var quickReply: Int?
        public var text: String?
        public var replyToken: String?

        public static let fields = Fields<Self>(
            blank: Self(notification: ""),
            .required("notification", \.notification, "The id of the notification, `ntf_…`: `hato.id` of the push"),
            .optional(
                "action", \.action,
                """
                The id of the action; or `displayed`, `opened` or `dismissed`, reports that count once for each device. \
                Exactly one of `action` and `quickReply`
                """, example: "REPLY"),
            .optional(
                "quickReply", \.quickReply,
                """
                0 to 5: this quick reply of the user is the text of the category's action with `input` \
                (`no_text_input` without one)
                """, example: 0),
            .optional(
                "text", \.text,
                "The text of an action with `input`, and only of such a one: 1 to 4,096 bytes", example: "今行きます"),
            .optional(
                "replyToken", \.replyToken,
                """
                `hato.reply` of the push, in place of an ID token: good for this notification, user and device, for 24 \
                to 48 hours, while the device is registered for the user
                """, example: "AR5udGZfNGM3ZDFlOWEyYjZmODAzNQ"))

        public init(notification: String, action: String? = nil, replyToken: String? = nil) {
            self.notification = notification
            self.action = action
            self.replyToken = replyToken
        }

        public struct Result: FieldObject, Hashable {
            public var effect: EffectState
            public var reason: String?

            public static let fields = Fields<Self>(
                blank: Self(effect: .none),
                .required(
                    "effect", \.effect,
                    """
                    `done`; `pending`: not done yet, it is tried until it is done or refused; `refused`: see `reason`; \
                    `none`: there is none
                    """),
                .optional(
                    "reason", \.reason,
                    """
                    Why it is refused: `permission_denied` by the rules, `user_disabled`, `user_not_found`, \
                    `invalid_path` when a place of the path has no key, `no_thread` when the notification has none to \
                    read, `webhook_disabled` and `webhook_removed` for a webhook without a receiver, or another reason \
                    of messages
                    """))

            public init(effect: EffectState, reason: String? = nil) {
                self.effect = effect
                self.reason = reason
            }
        }

        public static let example: RPCExample<Respond> = {
            var request = Respond(
                notification: "ntf_4c7d1e9a2b6f8035", action: "REPLY", replyToken: "AR5udGZfNGM3ZDFlOWEyYjZmODAzNQ")
            request.text = "今行きます"
            return RPCExample(request, Result(effect: .done))
        }()

        /// What is no action of a category, but a report of a device.
        public enum Report: String, CaseIterable, Sendable {
            case displayed, opened, dismissed
        }
    }
}
