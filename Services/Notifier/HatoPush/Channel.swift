public import HatoFetch
public import HatoModel

/// One way to reach devices: APNs, FCM, Web Push, webhooks or e-mail.
public protocol Channel: Sendable {
    /// The platform of the devices that it reaches.
    var platform: Notifier.Platform { get }

    /// Checks an address before it is registered for a user, and returns it in its one normal spelling. Throws
    /// `AddressRefusal` when no device may have it.
    func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress

    /// Checks an address as the one above, for a device of this app: what an app may call can be its own setting.
    func check(
        _ address: DeviceAddress, of app: String, for uid: String
    ) async throws(AddressRefusal) -> DeviceAddress

    /// Makes one attempt, within the time limit of the channel, and returns its outcome.
    func deliver(_ delivery: Delivery) async -> DeliveryOutcome

    /// Takes the credentials of apps in place of those it had.
    func use(_ apps: PushApps)

    /// Calls the provider with a push that must be refused for its token only. Returns what is wrong with the
    /// credentials of the app, as a sentence; nil when they are good, or when there is nothing to check.
    func problem(of app: String) async -> String?

    /// What an attempt would send, without what authenticates it, the address and the token. Nil when nothing can be
    /// sent.
    func preview(of delivery: Delivery) -> DeliveryPreview?

    /// Closes the connections; one that is in use is closed after its delivery.
    func shutdown() async
}

extension Channel {
    public func use(_ apps: PushApps) {}
    public func problem(of app: String) async -> String? { nil }
    public func preview(of delivery: Delivery) -> DeliveryPreview? { nil }
    /// The app decides nothing.
    public func check(
        _ address: DeviceAddress, of app: String, for uid: String
    ) async throws(AddressRefusal) -> DeviceAddress {
        try await check(address, for: uid)
    }
}

/// One notification for one device.
public struct Delivery: Sendable, Hashable {
    /// The same in every attempt; receivers recognise a repetition by it.
    public var id: String
    /// Where it goes.
    public var address: DeviceAddress
    /// The app of the device, whose credentials are used.
    public var app = Delivery.defaultApp
    /// What it says.
    public var content: DeliveryContent
    /// Milliseconds since 1970: when the notification was accepted, the same in every attempt.
    public var createdAt: Int64
    /// Milliseconds since 1970: after it, the delivery is worth nothing.
    public var expiresAt: Int64 = .max

    /// The app of devices that name none.
    public static let defaultApp = "default"

    public init(id: String, address: DeviceAddress, content: DeliveryContent, createdAt: Int64) {
        self.id = id
        self.address = address
        self.content = content
        self.createdAt = createdAt
    }
}

/// What an attempt would send.
public struct DeliveryPreview: Sendable, Hashable {
    /// By name, in lower case; those of an e-mail before they are encoded.
    public var headers: [String: String]
    /// The body; of Web Push before its encryption, of an e-mail before it is encoded.
    public var body: String

    public init(headers: [String: String], body: [UInt8]) {
        self.headers = headers
        self.body = String(decoding: body, as: UTF8.self)
    }
}

/// The outcome of one attempt.
public enum DeliveryOutcome: Sendable, Hashable {
    case delivered(DeliveryResponse)
    /// Try again, but not before `retryAfter`.
    case failed(DeliveryResponse, retryAfter: Duration?)
    /// The receiver was not called: the look-up of its host had no turn in time, or the attempt was ended during the
    /// look-up. The attempt does not count.
    case postponed(DeliveryResponse)
    /// The device is gone: the receiver responded with 410, or the provider says that the app was removed. `since`, in
    /// milliseconds since 1970: as of when; nil when the provider does not say. A device that was registered again
    /// later is not gone.
    case deviceGone(DeliveryResponse, since: Int64?)
    /// The provider does not know the token in this environment, for this topic or project: the token is bad, or our
    /// configuration is. Many at once are our mistake.
    case tokenRefused(DeliveryResponse)
    /// The request is wrong, whatever the device: our bug. It is not tried again, and the token stays.
    case rejected(DeliveryResponse)
    /// The provider refuses all requests of the app with these credentials, or this configuration: the app's deliveries
    /// wait, and nothing is lost.
    case providerRefused(DeliveryResponse, retryAfter: Duration?)
}

/// What the receiver responded, or why the attempt failed, for people.
public struct DeliveryResponse: Sendable, Hashable {
    /// The HTTP status, or the code of SMTP; nil when there was no response.
    public var status: Int?
    /// Why the attempt failed or was postponed, with the beginning of the response's body; nil when it was delivered.
    public var error: String?
    /// The provider's own name of the delivery; nil when it gives none.
    public var providerID: String?
    /// The provider's own word for why it refuses, such as `BadDeviceToken` or `UNREGISTERED`; nil when it gives none.
    public var reason: String?
    /// Whether a mistake in the app's configuration keeps pushes from some of its devices, while the provider takes
    /// those for others.
    public var isMisconfiguration = false

    public init(status: Int? = nil, error: String? = nil, providerID: String? = nil, reason: String? = nil) {
        self.status = status
        self.error = error
        self.providerID = providerID
        self.reason = reason
    }
}
