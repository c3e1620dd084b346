public import HatoFetch
public import HatoModel

/// One way to reach devices. `WebhookChannel` is the only one; APNs, FCM and Web Push would be others.
public protocol Channel: Sendable {
    /// The platform of the devices that it reaches.
    var platform: Notifier.Platform { get }

    /// Checks an address before it is registered for a user, and returns it in its one normal spelling. Throws
    /// `AddressRefusal` when no device may have it.
    func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress

    /// Makes one attempt, within the time limit of the channel, and returns its outcome.
    func deliver(_ delivery: Delivery) async -> DeliveryOutcome

    /// Closes the connections; one that is in use is closed after its delivery.
    func shutdown() async
}

/// Where a device is, with what authenticates the notifier to it.
public enum DeviceAddress: Sendable, Hashable {
    /// Signed with every secret, the current one first: during a rotation there are two.
    case webhook(url: String, secrets: [WebhookSecret])

    /// The host and port that is called; the whole address when it names none.
    public var host: String {
        switch self {
        case .webhook(let url, _): (try? StrictURL(url)).map { "\($0.host):\($0.port)" } ?? url
        }
    }
}

/// One notification for one device.
public struct Delivery: Sendable, Hashable {
    /// The same in every attempt; receivers recognise a repetition by it.
    public var id: String
    /// Where it goes.
    public var address: DeviceAddress
    /// What it says.
    public var content: DeliveryContent
    /// Milliseconds since 1970: when the notification was accepted, the same in every attempt.
    public var createdAt: Int64

    public init(id: String, address: DeviceAddress, content: DeliveryContent, createdAt: Int64) {
        self.id = id
        self.address = address
        self.content = content
        self.createdAt = createdAt
    }
}

/// What a delivery carries.
public struct DeliveryContent: Sendable, Hashable {
    /// The id of the notification.
    public var notification: String
    /// The id of the device.
    public var device: String
    /// The user of the device.
    public var uid: String
    /// Title and body.
    public var text: Notifier.NotificationText
    /// What the receiving app gets, by name.
    public var data: [String: String]
    /// The id of the trigger that made it; nil for `notifier.send`.
    public var trigger: String?
    /// The path of the change that fired the trigger; nil without one.
    public var path: String?
    /// A newer notification with this key replaces it.
    public var collapseKey: String?

    public init(notification: String, device: String, uid: String, text: Notifier.NotificationText) {
        self.notification = notification
        self.device = device
        self.uid = uid
        self.text = text
        data = [:]
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
    /// The receiver responded with 410: the device is gone.
    case deviceGone(DeliveryResponse)
}

/// What the receiver responded, or why the attempt failed, for people.
public struct DeliveryResponse: Sendable, Hashable {
    /// The HTTP status; nil when there was no response.
    public var status: Int?
    /// Why the attempt failed or was postponed, with the beginning of the response's body; nil when it was delivered.
    public var error: String?

    public init(status: Int? = nil, error: String? = nil) {
        self.status = status
        self.error = error
    }
}
