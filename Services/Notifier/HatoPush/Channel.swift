public import HatoModel

/// One way to reach devices. The seam for APNs, FCM and Web Push; today's only channel is `WebhookChannel`.
public protocol Channel: Sendable {
    var platform: Notifier.Platform { get }

    /// Checks an address before it is registered for a user; returns it in its one normal spelling.
    func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress

    /// Tries once and says what happened; never longer than the channel's time limit.
    func deliver(_ delivery: Delivery) async -> DeliveryOutcome

    func shutdown() async
}

/// Where a device is, with what authenticates the notifier to it.
public enum DeviceAddress: Sendable, Hashable {
    /// Signed with every secret, the current one first: during a rotation there are two.
    case webhook(url: String, secrets: [WebhookSecret])

    /// The host that is called; the whole address when it names none.
    public var host: String {
        switch self {
        case .webhook(let url, _): (try? WebhookURL(url).host) ?? url
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
    /// The trigger and the path of the change that made it.
    public var trigger: String?
    /// The path of the change that fired the trigger.
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

/// What became of one attempt.
public enum DeliveryOutcome: Sendable, Hashable {
    case delivered(DeliveryResponse)
    /// Try again, but not before `retryAfter`.
    case failed(DeliveryResponse, retryAfter: Duration?)
    /// The receiver was not called, for lack of something of ours: no attempt of the receiver's.
    case postponed(DeliveryResponse)
    /// The receiver says that this address is no more.
    case deviceGone(DeliveryResponse)
}

/// What the receiver or the network said, for people.
public struct DeliveryResponse: Sendable, Hashable {
    /// HTTP status; nil when there was no answer.
    public var status: Int?
    /// Why there was no answer; nil when there was one.
    public var error: String?

    public init(status: Int? = nil, error: String? = nil) {
        self.status = status
        self.error = error
    }
}
