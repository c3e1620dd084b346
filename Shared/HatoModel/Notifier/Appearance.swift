extension Notifier {
    /// How urgent a notification is.
    public enum Priority: String, FieldChoice {
        case high
        /// May wait until the device is awake.
        case normal
    }

    /// How much a notification interrupts (Apple's `interruption-level`).
    public enum InterruptionLevel: String, FieldChoice {
        case passive, active
        case timeSensitive = "time-sensitive"
        case critical
    }

    /// Apple's two push services.
    public enum APNsEnvironment: String, FieldChoice {
        case production
        /// For apps that are signed for development.
        case sandbox
    }

    /// Members of the platforms' own, which take the place of those that the notifier makes.
    public struct PlatformMembers: FieldObject, Hashable {
        /// `{"headers": {"apns-…": "…"}, "aps": {…}}`, and members beside `aps` under `payload`.
        public var apns: JSONValue?
        /// Members of the `message` of FCM HTTP v1, without its target.
        public var fcm: JSONValue?
        /// `{"headers": {…}, "notification": {…}}`.
        public var webpush: JSONValue?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optionalJSON(
                "apns", \.apns,
                "Of APNs: `headers`, members of `aps`, and `payload` with members beside it",
                example: ["aps": ["target-content-id": "c1"]]),
            .optionalJSON(
                "fcm", \.fcm, "Of FCM HTTP v1: members of `message`, without a target",
                example: ["android": ["notification": ["channel_id": "messages"]]]),
            .optionalJSON(
                "webpush", \.webpush, "Of Web Push: `headers`, and members of `notification`",
                example: ["notification": ["requireInteraction": true]]))

        public init() {}
    }
}
