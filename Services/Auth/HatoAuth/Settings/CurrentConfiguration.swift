import Synchronization

/// The configuration as of the newest commit that changed the settings, readable from every thread.
final class CurrentConfiguration: Sendable {
    private struct State {
        var configuration: AuthConfiguration
        var version: UInt64
    }

    /// As the service was started.
    private let start: AuthConfiguration
    private let state: Mutex<State>

    init(_ start: AuthConfiguration, _ settings: StoredSettings) {
        self.start = start
        state = Mutex(State(configuration: settings.applied(to: start), version: 0))
    }

    var configuration: AuthConfiguration { state.withLock { $0.configuration } }

    /// Takes the settings of a commit, unless those of a later one are taken.
    func take(_ settings: StoredSettings, version: UInt64) {
        state.withLock { state in
            guard version > state.version else { return }
            state = State(configuration: settings.applied(to: start), version: version)
        }
    }
}
