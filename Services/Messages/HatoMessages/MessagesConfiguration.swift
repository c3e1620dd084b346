public import HatoIdentity
import HatoModel
public import HatoRPC
public import HatoStorage

/// The configuration of a messages service.
public struct MessagesConfiguration: Sendable {
    /// Where and how to listen, and the limits of the wire. The service fills in its methods, health and metrics.
    public var server: RPCServerConfiguration
    /// Bounds of what clients may ask for and hold.
    public var limits = MessagesLimits()
    /// The only folder backups are written under; nil: there are none.
    public var backupFolder: BackupFolder?
    /// The rules a store that was just created gives its first database, `default`.
    public var firstRules = DefaultRules.deny
    /// Whether the log of slow operations says whole paths: their keys may be names of people.
    public var logsWholePaths = false
    /// Where the keys come from that verify tokens: what `service.health` says of them. The service itself adds its
    /// store.
    public var keys: @Sendable () -> ServiceAuthenticator.Health = { .ready }
    /// Auth, whose changes of accounts it follows; nil: ID tokens are good until they expire, whatever becomes of their
    /// users.
    public var auth: AuthLink?
    /// Metrics of the process in Prometheus' text format, for `service.metrics`.
    public var metricsText: @Sendable () async -> String = { "" }
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64 = { WallClock.milliseconds() }
    /// A clock that only goes forward, from wherever it began: how long operations take.
    public var uptime: @Sendable () -> Duration = { [start = ContinuousClock.now] in ContinuousClock.now - start }

    public init(server: RPCServerConfiguration) { self.server = server }

    var slowLog: SlowOperations.Settings {
        SlowOperations.Settings(
            threshold: limits.slowOperationMs > 0 ? .milliseconds(limits.slowOperationMs) : nil,
            linesPerMinuteMax: limits.slowOperationLinesMax, showsPaths: logsWholePaths)
    }
}

/// How a service follows the changes of accounts.
public struct AuthLink: Sendable {
    /// How to reach auth, with a service key for `MessagesServer.methodsOfAuth`.
    public var configuration: RPCClientConfiguration
    /// Refuses the tokens of users that were disabled, deleted or signed out.
    public var authenticator: ServiceAuthenticator
    /// Where the names and photos of accounts are kept in the tree; nil: nowhere.
    public var profiles: ProfilePlace?

    public init(
        configuration: RPCClientConfiguration, authenticator: ServiceAuthenticator, profiles: ProfilePlace? = nil
    ) {
        self.configuration = configuration
        self.authenticator = authenticator
        self.profiles = profiles
    }
}

/// Rules that databases begin with.
public enum DefaultRules {
    /// Everything is denied to users: what a new database has.
    public static let deny = """
        {
          "rules": {
            ".read": false,
            ".write": false
          }
        }

        """

    /// Signed-in users read and write everything; the messages of chats and users are indexed by date.
    public static let signedIn = """
        {
          "rules": {
            ".read": "auth != null",
            ".write": "auth != null",
            "chats": {
              "$chat": {
                "messages": { ".indexOn": "date" }
              }
            },
            "users": {
              "$user": {
                "messages": { ".indexOn": "date" }
              }
            }
          }
        }

        """
}
