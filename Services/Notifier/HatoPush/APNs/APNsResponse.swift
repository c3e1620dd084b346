import HatoModel
import NIOHTTP1

/// Decides what a response of Apple's push service means (Apple, "Handling notification responses from APNs"): by its
/// status and the `reason` of its body.
///
/// Of the body, only a reason of Apple's form gets into errors: anything else could have the token of the device.
struct APNsResponse: Sendable {
    enum Decision: Hashable {
        case outcome(DeliveryOutcome)
        /// The provider token is too old: a new one does.
        case providerTokenExpired(DeliveryResponse)
    }

    private static let reasonBytesMax = 48
    private static let nameBytesMax = 64
    /// Apple names no time.
    private static let busyDelay = Duration.seconds(60)

    let status: Int
    /// Of Apple's form; nil: the body has none.
    let reason: String?
    private let timestamp: Int64?
    private let retryAfter: String?
    private let providerID: String?
    /// Milliseconds since 1970.
    private let now: Int64

    /// `body` may be cut; `now` in milliseconds since 1970.
    init(status: Int, headers: HTTPHeaders = [:], body: [UInt8], now: Int64) {
        self.status = status
        self.now = now
        let json = try? JSONParser.parse(body, depth: 4)
        reason = json?["reason"]?.string.flatMap { Self.isReason($0) ? $0 : nil }
        timestamp = json?["timestamp"]?.integer
        retryAfter = headers.first(name: "retry-after")
        // The sandbox has a name of its own for Apple's console.
        providerID = ["apns-unique-id", "apns-id"].lazy.compactMap { headers.first(name: $0) }.first(where: Self.isName)
    }

    /// What the response says about the provider token, at which APNs looks first.
    var proof: APNsLink.Proof {
        switch status {
        case 200..<300, 404, 405, 410, 413: .taken
        case 400: reason == "IdleTimeout" ? .nothing : .taken
        case 401, 403: .refused
        default: .nothing
        }
    }

    /// Whether the connection ends.
    var isShutdown: Bool { reason == "Shutdown" }

    var decision: Decision {
        switch status {
        // Whatever the body says: APNs has the notification.
        case 200..<300: .outcome(.delivered(DeliveryResponse(status: status, providerID: providerID)))
        case 400: .outcome(badRequest)
        case 403 where reason == "ExpiredProviderToken":
            .providerTokenExpired(response("APNs finds the provider token too old"))
        // Of this device's environment only, which a user names: the app's other deliveries go on.
        case 403 where reason == "BadEnvironmentKeyIdInToken":
            .outcome(.failed(response("the key is not for this environment"), retryAfter: delay ?? Self.busyDelay))
        case 401, 403:
            .outcome(.providerRefused(response("APNs refuses the key"), retryAfter: delay))
        case 410:
            // A time to come would take a device that registers again.
            .outcome(.deviceGone(response("the app was removed, or its token has ended"), since: goneSince))
        case 429 where reason == "TooManyProviderTokenUpdates":
            .outcome(
                .providerRefused(response("APNs has had too many provider tokens"), retryAfter: delay ?? Self.busyDelay)
            )
        case 429:
            .outcome(
                .failed(
                    response("APNs has had too much for this device"), retryAfter: max(delay ?? .zero, Self.busyDelay)))
        case 300..<400: .outcome(.failed(response("redirects are not followed"), retryAfter: nil))
        case 408, 500...: .outcome(.failed(response("APNs failed"), retryAfter: delay))
        default: .outcome(.rejected(response("APNs refuses the request")))
        }
    }

    private var badRequest: DeliveryOutcome {
        switch reason {
        case "BadDeviceToken": .tokenRefused(response("the token is none of this environment"))
        case "DeviceTokenNotForTopic": .tokenRefused(response("the token is of another app"))
        case "BadTopic", "MissingTopic", "TopicDisallowed", "BadCertificateEnvironment":
            .providerRefused(response("APNs refuses the topic or the environment"), retryAfter: delay)
        case "IdleTimeout": .failed(response("the connection had been idle"), retryAfter: delay)
        default: .rejected(response("APNs refuses the request"))
        }
    }

    private var goneSince: Int64? {
        timestamp.flatMap { $0 > 0 ? min($0, now) : nil }
    }

    private var delay: Duration? { RetryAfter.delay(retryAfter, now: now / 1_000) }

    private func response(_ what: String) -> DeliveryResponse {
        DeliveryResponse(status: status, error: reason.map { "\(what): \($0)" } ?? what, reason: reason)
    }

    /// Apple's reasons are words; tokens have digits.
    private static func isReason(_ text: String) -> Bool {
        (1...reasonBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) }
    }

    private static func isName(_ text: String) -> Bool {
        (1...nameBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D
            }
    }
}
