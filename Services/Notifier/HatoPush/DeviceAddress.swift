import HatoFetch
public import HatoModel

/// Where a device is, with what authenticates the notifier to it.
public enum DeviceAddress: Sendable, Hashable {
    /// Signed with every secret, the current one first: during a rotation there are two.
    case webhook(url: String, secrets: [WebhookSecret])
    case apns(APNsDevice)
    case fcm(FCMRegistration)
    case webpush(WebPushSubscription)
    case email(Mailbox)

    /// The host and port that is called; the platform's name where that is the same for all devices.
    public var host: String {
        switch self {
        case .webhook(let url, _): Self.host(of: url)
        case .webpush(let subscription): Self.host(of: subscription.endpoint)
        case .apns: Notifier.Platform.apns.rawValue
        case .fcm: Notifier.Platform.fcm.rawValue
        case .email: Notifier.Platform.email.rawValue
        }
    }

    /// The whole address when it names no host.
    private static func host(of url: String) -> String {
        (try? StrictURL(url)).map { "\($0.host):\($0.port)" } ?? url
    }
}

/// A device of Apple's push service (Apple, "Sending notification requests to APNs").
public struct APNsDevice: Sendable, Hashable {
    /// Hexadecimal digits in lower case.
    public var token: String
    /// Apple's service that knows the token.
    public var environment: Notifier.APNsEnvironment

    /// Throws `invalid_token` when `token` is no even number of 16 to 400 hexadecimal digits.
    public init(token: String, environment: Notifier.APNsEnvironment) throws(ArgumentError) {
        let digits = Array(token.utf8)
        let isHexadecimal = digits.allSatisfy { byte in
            (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
        }
        guard (16...400).contains(digits.count), digits.count % 2 == 0, isHexadecimal else {
            throw ArgumentError(
                reason: "invalid_token", "A device token of APNs has 16 to 400 hexadecimal digits, an even number")
        }
        self.token = token.lowercased()
        self.environment = environment
    }
}

/// An app on a device, as Firebase Cloud Messaging knows it: by a registration token, or by a Firebase installation id.
public enum FCMRegistration: Sendable, Hashable {
    case token(String)
    case installation(String)

    /// Throws `invalid_token` when `token` is not 1 to 4,096 visible ASCII characters.
    public init(token: String) throws(ArgumentError) { self = .token(try Self.checked(token, "token")) }

    /// Throws `invalid_token` when `fid` is not 1 to 4,096 visible ASCII characters.
    public init(fid: String) throws(ArgumentError) { self = .installation(try Self.checked(fid, "fid")) }

    private static func checked(_ text: String, _ name: String) throws(ArgumentError) -> String {
        guard (1...4_096).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw ArgumentError(
                reason: "invalid_token", "A \(name) of FCM has 1 to 4,096 characters of ASCII, none of them a blank")
        }
        return text
    }
}
