extension Notifier {
    /// The channel of a device.
    public enum Platform: String, FieldChoice {
        case apns, fcm, webpush, webhook

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

    /// An address that belongs to one user.
    public struct Device: FieldObject, Hashable {
        public var device: String
        public var uid: String
        public var platform: Platform
        public var url: String
        public var app: String?
        public var locale: String?
        public var state: DeviceState
        public var disabledReason: String?
        public var createdAt: Int

        public static let fields = Fields<Self>(
            blank: Self(device: "", uid: "", platform: .webhook, url: "", createdAt: 0),
            .required("device", \.device, "The id of the device, `dev_…`"),
            .required("uid", \.uid, "The user the device belongs to"),
            .required("platform", \.platform, "How the device is reached: `webhook`"),
            .required("url", \.url, "The URL of the webhook"),
            .optional("app", \.app, "The app the device belongs to, 1 to 256 bytes"),
            .optional("locale", \.locale, "The language of the device, e.g. `ja-JP`: 1 to 256 bytes"),
            .required(
                "state", \.state,
                """
                `active`, or `disabled`: no deliveries are attempted (see `disabledReason`); \
                `notifier.devices.register` with the same `url` makes it active
                """),
            .optional(
                "disabledReason", \.disabledReason,
                """
                Why it is disabled: `gone`: the receiver responded with 410; `failing`: every attempt failed \
                for 5 days
                """
            ),
            .required("createdAt", \.createdAt, "When it was registered, in milliseconds since 1970"))

        public init(device: String, uid: String, platform: Platform, url: String, createdAt: Int) {
            self.device = device
            self.uid = uid
            self.platform = platform
            self.url = url
            self.createdAt = createdAt
            state = .active
        }
    }
}

extension Notifier.Devices {
    /// Registers the caller's device. A webhook belongs to its address (with `app`) and its user: several users have
    /// devices at one address. Registered again by the same user it stays the same device, keeps its secret unless a
    /// new one is given, and becomes active again.
    public struct Register: RPCRequest {
        public static let method = "notifier.devices.register"
        public static let summary = """
            Registers a device of the caller. The same user with the same `url` and `app` gets the same device \
            again, active and with its secret. A user has at most 32 devices (`too_many_devices`)
            """
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var platform: Notifier.Platform
        public var url: String
        public var secret: String?
        public var app: String?
        public var locale: String?
        public var uid: String?

        public static let fields = Fields<Self>(
            blank: Self(url: ""),
            .required("platform", \.platform, "How the device is reached: `webhook`"),
            .required(
                "url", \.url,
                """
                The URL of the webhook: https, port 443 or 8443, a host on the public internet, at most \
                2,048 bytes (settings `webhook-ports`, `allow-private-webhooks`)
                """),
            .optional(
                "secret", \.secret,
                """
                The signing secret: `whsec_` and base64 of 24 to 64 bytes; generated when absent, for a new \
                device
                """),
            .optional(
                "app", \.app,
                """
                The app the device belongs to, 1 to 256 bytes, such as a bundle id; the same URL with \
                another `app` is another device. No app when absent
                """, example: "com.example.chat"),
            .optional(
                "locale", \.locale,
                """
                The language of the device, e.g. `ja-JP`: any text of 1 to 256 bytes without control \
                characters, which is only stored; unchanged when absent
                """, example: "ja-JP"),
            .optional(
                "uid", \.uid,
                """
                The user the device belongs to, 1 to 512 bytes of UTF-8 without control characters: required \
                with the administrator key; a user may only give the own uid
                """, example: "u1"))

        public init(platform: Notifier.Platform = .webhook, url: String, secret: String? = nil, uid: String? = nil) {
            self.platform = platform
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
                    device: "dev_8s2k1c9d0f4g7h3j", uid: "u1", platform: .webhook,
                    url: "https://example.com/hooks/hato", createdAt: 1_795_000_000_000)
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
