extension Notifier {
    /// How a device is reached.
    public enum Platform: String, Codable, Sendable, Hashable, CaseIterable {
        case webhook

        public init(from decoder: any Decoder) throws {
            let name = try decoder.singleValueContainer().decode(String.self)
            guard let platform = Platform(rawValue: name) else { throw Platform.unsupported(name) }
            self = platform
        }

        static func unsupported(_ name: String) -> ArgumentError {
            let known = allCases.map(\.rawValue).joined(separator: ", ")
            return ArgumentError(
                reason: "unsupported_platform", "Platform \"\(name)\" is not served; this notifier has: \(known)")
        }
    }

    /// Whether deliveries are attempted.
    public enum DeviceState: String, Codable, Sendable, Hashable, CaseIterable {
        case active
        /// The receiver said that it is gone, or failed for days; registering again makes it active.
        case disabled
    }

    /// An address that belongs to one user.
    public struct Device: Codable, Sendable, Hashable {
        public var device: String
        public var uid: String
        public var platform: Platform
        public var url: String
        public var app: String?
        public var locale: String?
        public var state: DeviceState
        public var disabledReason: String?
        public var createdAt: Int

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
    /// Registers the caller's device. The same address (with the same `app`) moves to the newest user and becomes a
    /// device of its own: what still waited for the former user is dropped. Registered again by the same user it stays
    /// the device it is, keeps its secret unless a new one is given, and becomes active again.
    public struct Register: RPCRequest {
        public static let method = "notifier.devices.register"
        public static let summary = "Registers an address that notifications of the caller are delivered to"
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var platform: Notifier.Platform
        /// Where a webhook is delivered: https, and a public address.
        public var url: String
        /// `whsec_` and base64 of 24 to 64 bytes; made by the notifier when absent.
        public var secret: String?
        public var app: String?
        public var locale: String?
        /// Administrators say whose device it is.
        public var uid: String?

        public init(platform: Notifier.Platform = .webhook, url: String, secret: String? = nil, uid: String? = nil) {
            self.platform = platform
            self.url = url
            self.secret = secret
            self.uid = uid
        }

        public struct Result: Codable, Sendable, Hashable {
            public var device: String
            /// The signing secret, shown only when this call made or changed it.
            public var secret: String?

            public init(device: String, secret: String? = nil) {
                self.device = device
                self.secret = secret
            }
        }

        public static let example = RPCExample(
            Register(url: "https://example.com/hooks/hato"),
            Result(device: "dev_8s2k1c9d0f4g7h3j", secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))

        /// Judges the platform before the parameters of platforms that are not served are found unknown.
        public static func decode(_ params: JSONObject) throws -> Register {
            if let name = params["platform"]?.string, Notifier.Platform(rawValue: name) == nil {
                let error = Notifier.Platform.unsupported(name)
                throw RPCError.invalidArgument("platform", reason: error.reason, error.message)
            }
            return try JSONCoding.decode(Register.self, from: params)
        }
    }

    /// Lists the caller's devices; administrators see everybody's or those of `uid`.
    public struct List: RPCRequest {
        public static let method = "notifier.devices.list"
        public static let summary = "Lists devices of the caller, or for administrators of everybody or one user"
        public static let access = Access.signedIn
        public static let effect = Effect.read

        public var uid: String?
        /// The last device of the page before.
        public var after: String?
        public var limit: Int?

        public init(uid: String? = nil, after: String? = nil, limit: Int? = nil) {
            self.uid = uid
            self.after = after
            self.limit = limit
        }

        public struct Result: Codable, Sendable, Hashable {
            public var devices: [Notifier.Device]
            /// Present when there may be more: ask again with it.
            public var after: String?

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

    /// Gives a device a new signing secret; the former one signs too for a while, so that the receiver can change over.
    public struct RotateSecret: RPCRequest {
        public static let method = "notifier.devices.rotateSecret"
        public static let summary = "Gives a device a new signing secret, the former one signing beside it for a while"
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var device: String
        public var secret: String?

        public init(device: String, secret: String? = nil) {
            self.device = device
            self.secret = secret
        }

        public struct Result: Codable, Sendable, Hashable {
            public var secret: String
            /// Until when the former secret signs as well.
            public var previousUntil: Int

            public init(secret: String, previousUntil: Int) {
                self.secret = secret
                self.previousUntil = previousUntil
            }
        }

        public static let example = RPCExample(
            RotateSecret(device: "dev_8s2k1c9d0f4g7h3j"),
            Result(secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", previousUntil: 1_795_086_400_000))
    }

    /// Forgets a device; what still waited for it is dropped.
    public struct Unregister: RPCRequest {
        public typealias Result = Empty
        public static let method = "notifier.devices.unregister"
        public static let summary = "Forgets a device; what still waits for it is dropped"
        public static let access = Access.signedIn
        public static let effect = Effect.write

        public var device: String

        public init(device: String) { self.device = device }

        public static let example = RPCExample(Unregister(device: "dev_8s2k1c9d0f4g7h3j"), Empty())
    }
}
