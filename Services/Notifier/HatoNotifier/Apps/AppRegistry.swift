import HatoModel
import HatoPush
import Synchronization

/// The apps that are served now.
final class AppRegistry: Sendable {
    private let state: Mutex<PushApps>
    private let channels: [any Channel]

    init(_ apps: PushApps, channels: [any Channel]) {
        state = Mutex(apps)
        self.channels = channels
        for channel in channels { channel.use(apps) }
    }

    var apps: PushApps { state.withLock { $0 } }

    /// Serves these apps from now on.
    func replace(with apps: PushApps) {
        state.withLock { $0 = apps }
        for channel in channels { channel.use(apps) }
    }

    /// Throws `app_not_configured` when an app has no credentials for a platform that needs them.
    func requireCredentials(of app: String, for platform: Notifier.Platform) throws(NotifierError) {
        guard platform != .webhook, apps.apps[app]?.platforms.contains(platform) != true else { return }
        throw .appNotConfigured(app, platform)
    }

    /// The environment of APNs that devices of an app have unless they name one.
    func environment(of app: String) -> Notifier.APNsEnvironment { apps.apps[app]?.apns?.environment ?? .production }
}
