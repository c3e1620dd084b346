import HatoModel
import HatoPush

/// A device and what only the notifier knows of it.
struct DeviceRecord: FieldObject, Hashable {
    var device: String
    /// Empty for a token that was named in place of a device, and that no user has registered, and for the receiver of
    /// an effect.
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
    /// When it was registered last, or its token was used without a user; nil: at `createdAt`.
    var seenAt: Int64?
    /// Since when every attempt failed.
    var failingSince: Int64?
    /// Whether a delivery arrived since its token came.
    var hasSucceeded: Bool
    /// Whether the other environment of APNs was tried since its token came.
    var hasSwitched: Bool
    /// Since when its token is refused that had worked, or the address of a mailbox.
    var refusedSince: Int64?
    /// The session of auth under which it was registered last; nil: by an administrator, or a token of other software.
    var session: String?
    /// The address of a mailbox.
    var email: String?

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
        .optional("refusedSince", \.refusedSince),
        .optional("email", \.email))

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
    var owner: UserDigest { UserDigest(uid: uid, device: device) }
    var userKey: RecordKey { RecordKey(.deviceOfUser).with(uid).with(device) }

    /// A webhook belongs to its address and its user, everything else to the user that registered it last.
    var addressKey: RecordKey {
        switch platform {
        case .webhook: DeviceRecord.webhookKey(url ?? "", app: app).with(uid)
        // An endpoint may be known to others, what signs in there is not: a caller with both has the subscription.
        case .webpush: DeviceRecord.addressKey(platform, app).with(url ?? "").with(auth ?? "")
        case .apns: DeviceRecord.addressKey(platform, app).with(token ?? "")
        case .fcm:
            // An installation id is no token, though both are texts.
            DeviceRecord.addressKey(platform, app).with(token).with(fid ?? "")
        // A user has one, with whichever address was verified last.
        case .email: DeviceRecord.addressKey(platform, app).with(uid)
        }
    }

    /// As earlier versions wrote it: of whichever user registered the address last.
    static func webhookKey(_ url: String, app: String?) -> RecordKey { addressKey(.webhook, app).with(url) }

    private static func addressKey(_ platform: Notifier.Platform, _ app: String?) -> RecordKey {
        RecordKey(.deviceAtAddress).with(platform.rawValue).with(app)
    }

    /// Whose queue its deliveries wait in; nil: they have receivers of their own.
    var queue: ProviderQueue? { ProviderQueue(platform, app: app ?? Delivery.defaultApp) }

    /// Its row among tokens without users, those that are gone first; nil for a user's device, and for the receiver of
    /// an effect.
    var tokenKey: RecordKey? {
        uid.isEmpty && platform != .webhook
            ? RecordKey(.tokenDevice).with(time: state == .active ? lastSeen : 0).with(device) : nil
    }

    /// Whether it is the receiver of an effect, which all users share: failures for one of them must not end it.
    var isReceiver: Bool { uid.isEmpty && platform == .webhook }

    /// When the app showed itself last.
    var lastSeen: Int64 { seenAt ?? createdAt }

    /// With the rows that lead to it.
    func delete(in writes: inout RecordWrites) {
        writes.delete(key)
        writes.delete(userKey)
        writes.delete(addressKey)
        if let tokenKey { writes.delete(tokenKey) }
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
        case .email: return .email(try Mailbox(email ?? ""))
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

extension DeviceRecord {
    /// Remembers the outcome of an attempt.
    mutating func attemptEnded(
        _ outcome: DeliveryOutcome, _ circumstances: DeviceVerdict.Circumstances, _ policy: DeliveryPolicy
    ) -> DeviceVerdict {
        guard state == .active else { return .ends(.gone) }
        let now = circumstances.now
        switch outcome {
        case .delivered:
            (failingSince, refusedSince, hasSucceeded) = (nil, nil, true)
            return .stays
        case .postponed, .providerRefused: return .stays
        // Nothing was sent.
        case .rejected(let response) where response.status == nil: return .stays
        case .deviceGone(_, let since):
            // Registered again since: it works again, or the next attempt says so.
            // A token without a user is used, not registered.
            if !uid.isEmpty || isReceiver, lastSeen > since ?? circumstances.began { return .stays }
            return ends(.gone)
        case .tokenRefused:
            // The attempt was made before its environment changed, or before it was registered again.
            let isOfBefore = circumstances.environment.map { $0 != environment ?? .production } ?? false
            if isOfBefore { return .hasSwitched }
            if lastSeen > circumstances.began { return .stays }
            if circumstances.isStopped { return .isSuspect }
            if platform == .email { return wasRefusedAsMailbox(circumstances, policy) }
            if !hasSucceeded {
                guard platform == .apns, !hasSwitched else { return ends(.gone) }
                environment = environment == .sandbox ? .production : .sandbox
                hasSwitched = true
                return .hasSwitched
            }
            // Refusals long ago, such as before a stop, say nothing about now.
            let since = refusedSince.flatMap { now - $0 < 5 * DeviceVerdict.suspicion ? $0 : nil } ?? now
            refusedSince = since
            return now - since < DeviceVerdict.suspicion ? .isSuspect : ends(.gone)
        case .failed, .rejected:
            // A provider that fails, or finds a push wrong, says nothing about the device.
            guard queue == nil, !isReceiver else { return .stays }
            if platform == .webpush, hasSucceeded, outcome.mayBeOurMistake { return .stays }
            let since = failingSince ?? now
            failingSince = since
            return now - since < policy.disableAfter.milliseconds ? .stays : ends(.failing)
        }
    }

    /// Auth has verified the address: a refusal without a reason may be that of a wrong server. It goes when it was
    /// refused for days in which the server took other e-mails.
    private mutating func wasRefusedAsMailbox(
        _ circumstances: DeviceVerdict.Circumstances, _ policy: DeliveryPolicy
    ) -> DeviceVerdict {
        let since = refusedSince ?? circumstances.now
        refusedSince = since
        guard circumstances.now - since >= policy.disableAfter.milliseconds,
            let mailed = circumstances.mailedAt, mailed > since
        else { return .stays }
        return ends(.gone)
    }

    private mutating func ends(_ reason: NotifierMetrics.Removal) -> DeviceVerdict {
        state = .disabled
        disabledReason = reason.rawValue
        return .ends(reason)
    }
}

extension DeliveryOutcome {
    /// Whether a key, a subject, a body or a network of ours can be why a push service did not take a push: it gave no
    /// response, or finds the request wrong. A subscription that worked does not go for that.
    var mayBeOurMistake: Bool {
        switch self {
        case .failed(let response, _), .rejected(let response):
            response.status.map { [400, 401, 403, 413].contains($0) } ?? true
        case .delivered, .postponed, .deviceGone, .tokenRefused, .providerRefused: false
        }
    }
}

extension DeviceRecord {
    /// What a request says of a device that has no name yet.
    struct Form {
        var uid: String
        var platform: Notifier.Platform
        /// Nil: `default`.
        var app: String?
        var locale: String?
        var timeZone: String?
        var session: String?
    }

    /// Where a device is: the members of its platform.
    struct Address {
        var url: String?
        var token: String?
        var fid: String?
        var environment: Notifier.APNsEnvironment?
        /// Of a subscription: key and secret of the receiver.
        var keys: (p256dh: [UInt8], auth: [UInt8])?
        var email: String?
    }

    init(_ form: Form, _ address: Address, createdAt: Int64) {
        self.init(device: "", uid: form.uid, platform: form.platform, createdAt: createdAt)
        (app, locale, timeZone, session) = (form.app, form.locale, form.timeZone, form.session)
        (url, token, fid, environment) = (address.url, address.token, address.fid, address.environment)
        email = address.email
        if let keys = address.keys { (p256dh, auth) = (Base64.url.encode(keys.p256dh), Base64.url.encode(keys.auth)) }
    }

    /// The same with its URL in the normal spelling.
    func at(_ url: String?) -> DeviceRecord {
        var device = self
        device.url = url
        return device
    }

    /// A new device with this name; `environment` is that of its app, `secret` the signing secret of a webhook.
    func begun(
        as name: String, at now: Int64, environment appEnvironment: Notifier.APNsEnvironment, secret: WebhookSecret
    ) -> DeviceRecord {
        var device = self
        device.device = name
        device.seenAt = now
        switch platform {
        case .apns: device.environment = environment ?? appEnvironment
        case .webhook: device.secret = secret.text
        case .fcm, .webpush, .email: break
        }
        return device
    }

    /// A token without a user, to be known by this name.
    init(_ token: String, of app: TokenApp, named name: String, at now: Int64) {
        self.init(device: name, uid: "", platform: app.platform, createdAt: now)
        (self.app, self.token, seenAt) = (app.app, token, now)
        // Apple's production service is asked first, and the other one if that refuses the token.
        if app.platform == .apns { environment = .production }
    }

    /// The same token, used now.
    func used(at now: Int64) -> DeviceRecord {
        var device = self
        device.seenAt = now
        (device.state, device.disabledReason) = (.active, nil)
        return device
    }

    /// The same device, registered again.
    func renewed(by form: DeviceRecord, at now: Int64) -> DeviceRecord {
        var device = self
        device.state = .active
        (device.disabledReason, device.failingSince, device.refusedSince) = (nil, nil, nil)
        device.seenAt = now
        device.session = form.session
        device.app = form.app
        device.locale = form.locale ?? locale
        device.timeZone = form.timeZone ?? timeZone
        (device.p256dh, device.auth) = (form.p256dh, form.auth)
        if form.email != email { (device.email, device.hasSucceeded) = (form.email, false) }
        if let named = form.environment, named != environment {
            (device.environment, device.hasSwitched, device.hasSucceeded) = (named, false, false)
        }
        return device
    }

    /// Makes `new` the signing secret; the former one signs too for a while. Returns the new one, nil when it is no
    /// change.
    mutating func replaceSecret(_ new: WebhookSecret, at now: Int64, _ policy: DeliveryPolicy) -> WebhookSecret? {
        guard new.text != secret else { return nil }
        previousSecret = secret
        previousUntil = now + policy.secretOverlap.milliseconds
        secret = new.text
        return new
    }
}

extension UserDigest {
    /// Whose deliveries those of a device are: each token without a user counts as a user, so that no other one waits
    /// for its deliveries. No uid has a control character.
    init(uid: String, device: String) { self.init(uid: uid.isEmpty ? "\u{1}\(device)" : uid) }
}

/// The deliveries of one app to one provider: they have one set of credentials and wait together when the provider
/// does not respond.
struct ProviderQueue: Hashable, Sendable {
    let platform: Notifier.Platform
    let app: String

    /// Nil for platforms whose devices have receivers of their own.
    init?(_ platform: Notifier.Platform, app: String) {
        switch platform {
        case .apns, .fcm, .email: (self.platform, self.app) = (platform, app)
        case .webpush, .webhook: return nil
        }
    }

    /// As it stands in keys of rows.
    var name: String { "\(platform.rawValue) \(app)" }

    /// How the names of those begin whose devices are mailboxes.
    static let mailPrefix = "\(Notifier.Platform.email.rawValue) "

    /// Attempts in it at the same time.
    func attemptsMax(_ policy: DeliveryPolicy) -> Int {
        // E-mails share one connection: the next one is made while one is being sent.
        platform == .email ? min(2, policy.attemptsPerProviderMax) : policy.attemptsPerProviderMax
    }

    /// Nil when it is no such name.
    init?(name: String) {
        let parts = name.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, let platform = Notifier.Platform(rawValue: String(parts[0])) else { return nil }
        self.init(platform, app: String(parts[1]))
    }
}
