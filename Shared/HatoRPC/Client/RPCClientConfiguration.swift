/// Where a client calls and how patient it is.
public struct RPCClientConfiguration: Sendable {
    /// The name or address of the server.
    public var host: String
    /// The port of the server.
    public var port: Int
    /// How TLS is spoken; nil: not at all.
    public var tls: RPCClientTLS?
    /// The identity of the connection: asked before each connecting, shown with `session.authenticate`. Nil: the
    /// connection has no identity.
    public var credential: (@Sendable () async throws -> String)?
    /// How long a call may take, connecting included.
    public var timeout: Duration = .seconds(30)
    /// How long connecting may take.
    public var connectTimeout: Duration = .seconds(5)
    /// A lost connection is made again when the next call comes: after a random time up to `reconnectDelayMin`,
    /// doubling up to `reconnectDelayMax` while connecting fails.
    public var reconnectDelayMin: Duration = .milliseconds(50)
    /// The longest wait before it connects again.
    public var reconnectDelayMax: Duration = .seconds(10)
    /// One line from the server, without its end.
    public var lineBytesMax = 32 << 20
    /// Notifications a subscription keeps for a slow reader; above, the client stops reading from the server.
    public var subscriptionBufferMax = 256
    /// Bytes of their lines. One that is larger is kept all the same.
    public var subscriptionBufferBytesMax = 8 << 20
    /// JSON inside each other in a line from the server.
    public var nestingMax = 128

    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `HOST:PORT`, `[IPv6]:PORT`; nil when it is neither.
    public init?(address: String) {
        guard let colon = address.lastIndex(of: ":"), let port = Int(address[address.index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        var host = address[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: port)
    }

    /// The same with a credential that does not change.
    public func with(credential: String) -> RPCClientConfiguration {
        var copy = self
        copy.credential = { credential }
        return copy
    }
}
