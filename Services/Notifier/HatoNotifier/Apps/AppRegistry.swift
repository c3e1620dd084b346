import HatoModel
import HatoPush
import Logging
import Synchronization

/// The apps that are served now.
final class AppRegistry: Sendable {
    private let state: Mutex<PushApps>
    private let channels: [any Channel]
    private let logger: Logger

    init(_ apps: PushApps, channels: [any Channel], logger: Logger) {
        state = Mutex(apps)
        (self.channels, self.logger) = (channels, logger)
        use(apps)
    }

    var apps: PushApps { state.withLock { $0 } }

    /// Serves these apps from now on.
    func replace(with apps: PushApps) {
        state.withLock { $0 = apps }
        use(apps)
    }

    private func use(_ apps: PushApps) {
        for channel in channels { channel.use(apps) }
        for (name, app) in apps.apps.sorted(by: { $0.key < $1.key }) where app.webpush?.allowsPrivate == true {
            logger.warning(
                "webpush.allow-private lets every user of the app have private addresses called, by http and at any port",
                metadata: ["app": "\(name)"])
        }
    }

    /// Throws `app_not_configured` when an app has no credentials for a platform that needs them.
    func requireCredentials(of app: String, for platform: Notifier.Platform) throws(NotifierError) {
        guard platform != .webhook, apps.apps[app]?.platforms.contains(platform) != true else { return }
        throw .appNotConfigured(app, platform)
    }

    /// The environment of APNs that devices of an app have unless they name one.
    func environment(of app: String) -> Notifier.APNsEnvironment { apps.apps[app]?.apns?.environment ?? .production }
}
