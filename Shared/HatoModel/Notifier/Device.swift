extension Notifier {
    /// The channel of a device.
    public enum Platform: String, FieldChoice {
        case apns, fcm, webpush, webhook, email

        public init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
            let name = try String(json: json, unknown: unknown)
            guard let platform = Platform(rawValue: name) else { throw FieldError(Platform.unsupported(name)) }
            self = platform
        }

        static func unsupported(_ name: String) -> ArgumentError {
            let known = allCases.map(\.rawValue).joined(separator: ", ")
            return ArgumentError(
                reason: "unsupported_platform", "Platform \"\(name)\" is not served; this notifier has: \(known)")
        }
    }

    /// Whether deliveries are attempted.
    public enum DeviceState: String, FieldChoice {
        case active
        /// The receiver reported that it is gone, or failed for days; registering again makes it active.
        case disabled
    }

    /// What a browser gives an app to be reached by: the JSON form of its `PushSubscription` (W3C Push API).
    public struct Subscription: FieldObject, Hashable {
        public var endpoint: String
        public var keys: Keys
        public var expirationTime: JSONValue?

        /// The receiver's keys (RFC 8291).
        public struct Keys: FieldObject, Hashable {
            public var p256dh: String
            public var auth: String

            public static let fields = Fields<Self>(
                blank: Self(p256dh: "", auth: ""),
                .required(
                    "p256dh", \.p256dh, "The public key: base64url of 65 bytes, a point of P-256",
                    example: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
                .required(
                    "auth", \.auth, "The authentication secret: base64url of 16 bytes",
                    example: "BTBZMqHH6r4Tts7J_aSIgg"))

            public init(p256dh: String, auth: String) {
                self.p256dh = p256dh
                self.auth = auth
            }
        }

        public static let fields = Fields<Self>(
            blank: Self(endpoint: "", keys: Keys(p256dh: "", auth: "")),
            .required(
                "endpoint", \.endpoint, "The https URL that is called; as that of a webhook it must be public",
                example: "https://push.example.net/s/8f2c"),
            .required("keys", \.keys, "The receiver's keys"),
            .optionalJSON("expirationTime", \.expirationTime, "As the browser gives it; it has no effect"))

        public init(endpoint: String, keys: Keys) {
            self.endpoint = endpoint
            self.keys = keys
        }
    }

    /// An address that belongs to one user.
    public struct Device: FieldObject, Hashable {
        public var device: String
        public var uid: String
        public var platform: Platform
        public var url: String?
        public var environment: APNsEnvironment?
        public var app: String?
        public var locale: String?
        public var timeZone: String?
        public var state: DeviceState
        public var disabledReason: String?
        public var createdAt: Int
        public var seenAt: Int?

        public static let fields = Fields<Self>(
            blank: Self(device: "", uid: "", platform: .webhook, createdAt: 0),
            .required("device", \.device, "The id of the device, `dev_…`"),
            .required(
                "uid", \.uid,
                """
                The user the device belongs to; empty for a token without a user, and for the receiver of an effect
                """),
            .required("platform", \.platform, "How the device is reached"),
            .optional("url", \.url, "The URL of a webhook; tokens, endpoints and e-mail addresses are not shown"),
            .optional("environment", \.environment, "Of `apns`: which of Apple's services knows the device"),
            .optional("app", \.app, "The app the device belongs to; absent: `default`"),
            .optional("locale", \.locale, "The language of the device, e.g. `ja-JP`: 1 to 256 bytes"),
            .optional("timeZone", \.timeZone, "The IANA time zone of the device, e.g. `Asia/Tokyo`"),
            .required(
                "state", \.state,
                """
                `active`, or `disabled`: no deliveries are attempted (see `disabledReason`); \
                `notifier.devices.register` with the same `url` makes it active; the receiver of an effect \
                `notifier.categories.set` with the same effect
                """),
            .optional(
                "disabledReason", \.disabledReason,
                """
                Why a webhook is disabled: `gone`: the receiver responded with 410; `failing`: every attempt \
                failed for 5 days. Devices of other platforms are removed when they are gone, except tokens without a \
                user, which stay disabled
                """
            ),
            .required("createdAt", \.createdAt, "When it was registered first, in milliseconds since 1970"),
            .optional("seenAt", \.seenAt, "When it was registered last, in milliseconds since 1970"))

        public init(device: String, uid: String, platform: Platform, createdAt: Int) {
            self.device = device
            self.uid = uid
            self.platform = platform
            self.createdAt = createdAt
            state = .active
        }
    }
}

extension Notifier.Devices {
    /// Registers the caller's device. A token or subscription belongs to the user that registered it last. A webhook
    /// belongs to its address (with `app`) and its user: several users have devices at one address. Registered again by
    /// the same user it stays the same device, keeps its secret unless a new one is given, and becomes active again.
    public struct Register: RPCRequest {
        public static let method = "notifier.devices.register"
        public static let summary = """
            Registers a device of the caller. The same user with the same `token`, `fid`, `subscription` or `url` \
            and `app` gets the same device again, active and with its secret; a token or subscription of another \
            user moves to the caller. A device of `email` is the verified address of the caller's ID token, one for \
            each user and app. A user has at most 32 devices: beyond, the one that was registered the \
            longest time ago goes
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var platform: Notifier.Platform
        public var token: String?
        public var fid: String?
        public var subscription: Notifier.Subscription?
        public var url: String?
        public var secret: String?
        public var app: String?
        public var environment: Notifier.APNsEnvironment?
        public var locale: String?
        public var timeZone: String?
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(platform: .webhook),
            .required("platform", \.platform, "How the device is reached"),
            .optional(
                "token", \.token,
                "Of `apns`: the device token, 16 to 400 hexadecimal digits; of `fcm`: the registration token",
                example: "c5d9b0f2a4e6418d7f3b2c1a0e9d8c7b6a5f4e3d2c1b0a998877665544332211"),
            .optional(
                "fid", \.fid, "Of `fcm`: the Firebase installation id; exactly one of `token` and `fid`",
                example: "cFj3n1wQS0m8xq2Z"),
            .optional(
                "subscription", \.subscription, "Of `webpush`: what the browser gives, as JSON",
                example: Notifier.Subscription(
                    endpoint: "https://push.example.net/s/8f2c",
                    keys: .init(
                        p256dh:
                            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                        auth: "BTBZMqHH6r4Tts7J_aSIgg"))),
            .optional(
                "url", \.url,
                """
                Of `webhook`: its URL: https, port 443 or 8443, a host on the public internet, at most \
                2,048 bytes (settings `webhook-ports`, `allow-private-webhooks`)
                """, example: "https://example.com/hooks/hato"),
            .optional(
                "secret", \.secret,
                """
                Of `webhook`: the signing secret, `whsec_` and base64 of 24 to 64 bytes; generated when absent, \
                for a new device
                """),
            .optional(
                "app", \.app,
                """
                The app the device belongs to, 1 to 256 bytes: an entry of the setting `apps-file`, for a webhook \
                any name; the same address with another `app` is another device. `default` when absent
                """, example: "com.example.chat"),
            .optional(
                "environment", \.environment,
                """
                Of `apns`: `sandbox` for an app that is signed for development; what the app's entry says when \
                absent
                """, example: .sandbox),
            .optional(
                "locale", \.locale,
                """
                The language of the device, e.g. `ja-JP`: any text of 1 to 256 bytes without control \
                characters; unchanged when absent
                """, example: "ja-JP"),
            .optional(
                "timeZone", \.timeZone,
                """
                The IANA time zone of the device, e.g. as `TimeZone.current.identifier` has it; unchanged when absent, \
                or when the notifier does not know it
                """, example: "Asia/Tokyo"),
            .optional(
                "uid", \.uid,
                """
                The user the device belongs to, 1 to 512 bytes of UTF-8 without control characters: required \
                with the administrator key; a user may only give the own uid. Not with `email`, which needs the \
                user's own ID token
                """, example: "u1"))

        public init(platform: Notifier.Platform, uid: String? = nil) {
            self.platform = platform
            self.uid = uid
        }

        public init(url: String, secret: String? = nil, uid: String? = nil) {
            platform = .webhook
            self.url = url
            self.secret = secret
            self.uid = uid
        }

        public struct Result: FieldObject, Hashable {
            public var device: String
            public var secret: String?

            public static let fields = Fields<Self>(
                blank: Self(device: ""),
                .required("device", \.device, "The id of the device, `dev_…`"),
                .optional(
                    "secret", \.secret,
                    """
                    The signing secret; present only if this call generated or changed it: it cannot be read \
                    later
                    """))

            public init(device: String, secret: String? = nil) {
                self.device = device
                self.secret = secret
            }
        }

        public static let example = RPCExample(
            Register(url: "https://example.com/hooks/hato"),
            Result(device: "dev_8s2k1c9d0f4g7h3j", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))

        /// Checks the platform first, so that the parameters of an unsupported platform are not reported as unknown.
        public static func decode(_ params: JSONObject) throws(RPCError) -> Register {
            if let name = params["platform"]?.string, Notifier.Platform(rawValue: name) == nil {
                let error = Notifier.Platform.unsupported(name)
                throw RPCError.invalidArgument("platform", reason: error.reason, error.message)
            }
            return try decodeFields(params)
        }
    }

    /// Lists the caller's devices; administrators see those of all users or of `uid`.
    public struct List: RPCRequest {
        public static let method = "notifier.devices.list"
        public static let summary = "Lists devices of the caller, or for administrators of all users or one user"
        public static let access = Access.signedIn
        public static let effect = Effect.read

        public var uid: String?
        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "uid", \.uid,
                """
                The user whose devices are listed; with the administrator key all devices when absent. A \
                user may only give the own uid
                """, example: "u1"),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: "dev_8s2k1c9d0f4g7h3j"),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 100 when absent", example: 100))

        public init(uid: String? = nil, after: String? = nil, limit: Int? = nil) {
            self.uid = uid
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var devices: [Notifier.Device]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(devices: []),
                .required("devices", \.devices, "The devices of the page"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(devices: [Notifier.Device], after: String? = nil) {
                self.devices = devices
                self.after = after
            }
        }

        public static let example = RPCExample(
            List(),
            Result(devices: [
                Notifier.Device(
                    device: "dev_8s2k1c9d0f4g7h3j", uid: "u1", platform: .apns, createdAt: 1_795_000_000_000)
            ]))
    }

    /// Gives a device a new signing secret; the former one also signs for a while, so that the receiver can switch.
    public struct RotateSecret: RPCRequest {
        public static let method = "notifier.devices.rotateSecret"
        public static let summary = """
            Replaces the signing secret of a device; webhooks are signed with both secrets for 24 hours
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var device: String
        public var secret: String?

        public static let fields = Fields<Self>(
            blank: Self(device: ""),
            .required("device", \.device, "The id of the device, `dev_…`"),
            .optional(
                "secret", \.secret,
                "The new signing secret: `whsec_` and base64 of 24 to 64 bytes; generated when absent"))

        public init(device: String, secret: String? = nil) {
            self.device = device
            self.secret = secret
        }

        public struct Result: FieldObject, Hashable {
            public var secret: String
            public var previousUntil: Int

            public static let fields = Fields<Self>(
                blank: Self(secret: "", previousUntil: 0),
                .required("secret", \.secret, "The new signing secret"),
                .required(
                    "previousUntil", \.previousUntil,
                    """
                    The time until which webhooks are also signed with the former secret, in milliseconds since \
                    1970
                    """))

            public init(secret: String, previousUntil: Int) {
                self.secret = secret
                self.previousUntil = previousUntil
            }
        }

        public static let example = RPCExample(
            RotateSecret(device: "dev_8s2k1c9d0f4g7h3j"),
            Result(secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", previousUntil: 1_795_086_400_000))
    }

    /// Removes a device; deliveries that wait for it are dropped.
    public struct Unregister: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.devices.unregister"
        public static let summary = "Removes a device; deliveries that wait for it are dropped"
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var device: String

        public static let fields = Fields<Self>(
            blank: Self(device: ""),
            .required("device", \.device, "The id of the device, `dev_…`"))

        public init(device: String) { self.device = device }

        public static let example = RPCExample(Unregister(device: "dev_8s2k1c9d0f4g7h3j"), Empty())
    }
}
