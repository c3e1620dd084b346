public import HatoFirebase
public import HatoRPC

/// What a gateway serves, and with what.
public struct GatewayConfiguration: Sendable {
    /// The address it listens on.
    public var host = "127.0.0.1"
    /// The port it listens on; 0: any free one.
    public var port = 0
    /// Event loops; each has its own connections to the services.
    public var loops = 1
    /// The certificate and key; nil: plain HTTP.
    public var tls: RPCServerTLS?
    /// Where messages listens.
    public var messages: RPCClientConfiguration
    /// Where auth listens; nil: what needs it is not there.
    public var auth: RPCClientConfiguration?
    /// Where the notifier listens; nil: what needs it is not there.
    public var notifier: RPCClientConfiguration?
    /// The service key with which the gateway speaks for its clients (`session.forward`), of each service.
    public var forwardKey: String
    /// Which database a namespace names.
    public var namespaces = NamespaceTable()
    /// Whether each request is logged.
    public var logsRequests = true
    /// The proxies whose `X-Forwarded-For` names the address of a client.
    public var trustedProxies = TrustedProxies.none
    /// Where clients reach it; nil: by the `Host` of their requests, and the scheme that a trusted proxy names.
    public var publicURL: PublicURL?
    /// The pages whose scripts may call it.
    public var origins = AllowedOrigins.any
    /// Firebase Auth over HTTP; nil: its paths are those of the database.
    public var accounts: AccountsConfiguration?
    /// The conventions of Firebase's emulators; nil: it has none.
    public var emulator: EmulatorConfiguration?
    /// What clients may make it hold, and its times.
    public var limits = GatewayLimits()
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64

    /// A gateway before these services.
    ///
    /// - Parameters:
    ///   - messages: where messages listens.
    ///   - forwardKey: a service key that has `forward`, or the administrator key.
    ///   - now: milliseconds since 1970.
    public init(messages: RPCClientConfiguration, forwardKey: String, now: @escaping @Sendable () -> Int64) {
        self.messages = messages
        self.forwardKey = forwardKey
        self.now = now
    }

    /// The configuration of a gateway that may start. Throws `GatewayStartError`.
    func prepared() async throws -> GatewayConfiguration {
        var configuration = self
        try await configuration.emulator?.prepare(self)
        return configuration
    }
}
