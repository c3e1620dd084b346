import HatoModel
import HatoPush

/// A device and what only the notifier knows of it.
struct DeviceRecord: FieldObject, Hashable {
    var device: String
    var uid: String
    var platform: Notifier.Platform
    /// Nil: `default`.
    var app: String?
    /// The URL of a webhook, or the endpoint of a subscription.
    var url: String?
    /// Of APNs and FCM.
    var token: String?
    /// Of FCM: the installation id, in place of a token.
    var fid: String?
    var environment: Notifier.APNsEnvironment?
    /// Of a subscription, as base64url.
    var p256dh: String?
    var auth: String?
    /// The signing secret of a webhook.
    var secret: String?
    /// The secret before a rotation, which signs too until the given time.
    var previousSecret: String?
    var previousUntil: Int64?
    var locale: String?
    var timeZone: String?
    var state: Notifier.DeviceState
    var disabledReason: String?
    var createdAt: Int64
    /// When it was registered last; nil: at `createdAt`.
    var seenAt: Int64?
    /// Since when every attempt failed.
    var failingSince: Int64?
    /// Whether a delivery arrived since its token came.
    var hasSucceeded: Bool
    /// Whether the other environment of APNs was tried since its token came.
    var hasSwitched: Bool
    /// Since when its token is refused that had worked.
    var refusedSince: Int64?
    /// The session of auth under which it was registered last; nil: by an administrator, or a token of other software.
    var session: String?

    static let fields = Fields<Self>(
        blank: Self(device: "", uid: "", platform: .webhook, createdAt: 0),
        .required("device", \.device),
        .required("uid", \.uid),
        .required("platform", \.platform),
        .optional("url", \.url),
        .optional("app", \.app),
        .optional("locale", \.locale),
        .optional("secret", \.secret),
        .optional("previousSecret", \.previousSecret),
        .optional("previousUntil", \.previousUntil),
        .required("state", \.state),
        .optional("disabledReason", \.disabledReason),
        .required("createdAt", \.createdAt),
        .optional("failingSince", \.failingSince),
        .optional("session", \.session),
        .optional("token", \.token),
        .optional("fid", \.fid),
        .optional("environment", \.environment),
        .optional("p256dh", \.p256dh),
        .optional("auth", \.auth),
        .optional("timeZone", \.timeZone),
        .optional("seenAt", \.seenAt),
        .flag("hasSucceeded", \.hasSucceeded),
        .flag("hasSwitched", \.hasSwitched),
        .optional("refusedSince", \.refusedSince))

    init(device: String, uid: String, platform: Notifier.Platform, createdAt: Int64) {
        self.device = device
        self.uid = uid
        self.platform = platform
        self.createdAt = createdAt
        state = .active
        (hasSucceeded, hasSwitched) = (false, false)
    }

    static func key(_ device: String) -> RecordKey { RecordKey(.device).with(device) }
    var key: RecordKey { DeviceRecord.key(device) }
    var owner: UserDigest { UserDigest(uid: uid) }
    var userKey: RecordKey { RecordKey(.deviceOfUser).with(uid).with(device) }

    /// A webhook belongs to its address and its user, everything else to the user that registered it last.
    var addressKey: RecordKey {
        switch platform {
        case .webhook: DeviceRecord.webhookKey(url ?? "", app: app).with(uid)
        case .webpush: DeviceRecord.addressKey(platform, app).with(url ?? "")
        case .apns: DeviceRecord.addressKey(platform, app).with(token ?? "")
        case .fcm:
            // An installation id is no token, though both are texts.
            DeviceRecord.addressKey(platform, app).with(token).with(fid ?? "")
        }
    }

    /// As earlier versions wrote it: of whichever user registered the address last.
    static func webhookKey(_ url: String, app: String?) -> RecordKey { addressKey(.webhook, app).with(url) }

    private static func addressKey(_ platform: Notifier.Platform, _ app: String?) -> RecordKey {
        RecordKey(.deviceAtAddress).with(platform.rawValue).with(app)
    }

    /// Whose queue its deliveries wait in; nil: they have receivers of their own.
    var queue: ProviderQueue? { ProviderQueue(platform, app: app ?? Delivery.defaultApp) }

    /// When the app showed itself last.
    var lastSeen: Int64 { seenAt ?? createdAt }

    /// With the rows that lead to it.
    func delete(in writes: inout RecordWrites) {
        writes.delete(key)
        writes.delete(userKey)
        writes.delete(addressKey)
    }

    /// Throws when something in the store is not what it should be.
    func address(at now: Int64) throws(ArgumentError) -> DeviceAddress {
        switch platform {
        case .webhook:
            var secrets = [try WebhookSecret(secret ?? "")]
            if let previousSecret, let previousUntil, now < previousUntil {
                secrets.append(try WebhookSecret(previousSecret))
            }
            return .webhook(url: url ?? "", secrets: secrets)
        case .apns:
            return .apns(try APNsDevice(token: token ?? "", environment: environment ?? .production))
        case .fcm:
            if let fid { return .fcm(try FCMRegistration(fid: fid)) }
            return .fcm(try FCMRegistration(token: token ?? ""))
        case .webpush:
            return .webpush(
                try WebPushSubscription(
                    endpoint: url ?? "", p256dh: Base64.url.decode((p256dh ?? "").utf8) ?? [],
                    auth: Base64.url.decode((auth ?? "").utf8) ?? []))
        }
    }

    var shown: Notifier.Device {
        var shown = Notifier.Device(device: device, uid: uid, platform: platform, createdAt: Int(createdAt))
        // What a subscription or token is good for, a list of devices is not.
        if platform == .webhook { shown.url = url }
        shown.environment = environment
        shown.app = app
        shown.locale = locale
        shown.timeZone = timeZone
        shown.state = state
        shown.disabledReason = disabledReason
        shown.seenAt = seenAt.map { Int($0) }
        return shown
    }
}

/// The deliveries of one app to one provider: they have one set of credentials and wait together when the provider
/// does not respond.
struct ProviderQueue: Hashable, Sendable {
    let platform: Notifier.Platform
    let app: String

    /// Nil for platforms whose devices have receivers of their own.
    init?(_ platform: Notifier.Platform, app: String) {
        switch platform {
        case .apns, .fcm: (self.platform, self.app) = (platform, app)
        case .webpush, .webhook: return nil
        }
    }

    /// As it stands in keys of rows.
    var name: String { "\(platform.rawValue) \(app)" }

    /// Nil when it is no such name.
    init?(name: String) {
        let parts = name.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let platform = Notifier.Platform(rawValue: String(parts[0])) else { return nil }
        self.init(platform, app: String(parts[1]))
    }
}
