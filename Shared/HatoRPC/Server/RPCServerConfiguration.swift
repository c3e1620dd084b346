public import HatoModel

/// How a server listens, what it says about itself, and its limits.
public struct RPCServerConfiguration: Sendable {
    /// The address to listen on.
    public var host = "127.0.0.1"
    /// 0 takes any free port.
    public var port = 0
    /// How TLS is spoken; nil: not at all.
    public var tls: RPCServerTLS?
    /// Bounds of connections, lines and memory.
    public var limits = RPCLimits()
    /// Event loops, each a thread.
    public var loops = 2
    /// What `service.health` and the OpenRPC document call the service.
    public var service: String
    /// The version that both of them show.
    public var version: String
    /// The declared methods of the service; each must have a handler before the server starts.
    public var methods: [any RPCRequest.Type] = []
    /// What the service sends unasked, for its OpenRPC document.
    public var notifications: [any RPCNotification.Type] = []
    /// Status and checks for `service.health`.
    public var health: @Sendable () async -> RPCHealth = { RPCHealth(.ready) }
    /// Further lines for `service.metrics`, in Prometheus' text format.
    public var metrics: @Sendable () async -> String = { "" }
    /// The effective settings for `service.config`, secrets hidden.
    public var settings: @Sendable () async -> JSONValue = { [:] }
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64 = WallClock.milliseconds

    public init(service: String, version: String) {
        self.service = service
        self.version = version
    }
}

/// The health of a service: what `service.health` returns.
public struct RPCHealth: Sendable {
    /// How the service is.
    public var status: Service.Health.Status
    /// One member for each thing that was looked at.
    public var checks: JSONObject

    public init(_ status: Service.Health.Status, checks: JSONObject = [:]) {
        self.status = status
        self.checks = checks
    }
}
