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
    public var platforms: Set<Notifier.Platform> = []
    public var environment = Notifier.APNsEnvironment.production

    /// The public key with which browsers subscribe; nil without credentials for Web Push.
    public var webPushKey: String? { nil }

    /// An app without credentials.
    public init() {}
}
