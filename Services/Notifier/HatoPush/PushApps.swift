public import HatoModel

/// The apps of an installation, by id, with their credentials.
public struct PushApps: Sendable {
    /// The apps by id; `default` is that of devices that name none.
    public var apps: [String: PushApp]

    /// Apps by id.
    public init(_ apps: [String: PushApp] = [:]) { self.apps = apps }
}

/// The credentials of one app.
public struct PushApp: Sendable {
    /// Of Apple's push service; nil: the app has none.
    public var apns: APNsCredentials?
    /// Of Firebase Cloud Messaging; nil: the app has none.
    public var fcm: FCMServiceAccount?
    /// Of Web Push; nil: the app has none.
    public var webpush: WebPushCredentials?
    /// Of an SMTP server; nil: the app sends no e-mails.
    public var mail: MailCredentials?

    /// An app without credentials.
    public init() {}

    /// The platforms that it has credentials for.
    public var platforms: Set<Notifier.Platform> {
        var platforms: Set<Notifier.Platform> = []
        if apns != nil { platforms.insert(.apns) }
        if fcm != nil { platforms.insert(.fcm) }
        if webpush != nil { platforms.insert(.webpush) }
        if mail != nil { platforms.insert(.email) }
        return platforms
    }
}
