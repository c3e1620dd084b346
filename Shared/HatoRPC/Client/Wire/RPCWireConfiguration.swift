/// Where the wires to one service go, and what each of them may take.
package struct RPCWireConfiguration: Sendable {
    /// The name or address of the service.
    package var host: String
    /// The port of the service.
    package var port: Int
    /// How TLS is spoken; nil: not at all.
    package var tls: RPCClientTLS?
    /// How long connecting may take, with the look-up of the name and the handshake of TLS.
    package var connectTimeout: Duration = .seconds(5)
    /// One line from the service, without its end.
    package var lineBytesMax = 32 << 20
    /// JSON inside each other in a line from the service.
    package var nestingMax = 128
    /// A wire with more bytes queued is not writable.
    package var queuedBytesHigh = 256 << 10
    /// It is writable again from here on.
    package var queuedBytesLow = 64 << 10
    /// Bytes of input that the system keeps for one wire (SO_RCVBUF); Linux adds as much for its own records. They are
    /// what a wire that does not read may have to hold when the service closes it.
    package var socketReceivedBytesMax = 256 << 10
    /// Bytes of output that the system keeps for one wire beside what is on its way (TCP_NOTSENT_LOWAT).
    package var socketUnsentBytesMax = 128 << 10

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// The same service as that of a client.
    package init(_ client: RPCClientConfiguration) {
        self.init(host: client.host, port: client.port)
        tls = client.tls
        connectTimeout = client.connectTimeout
        lineBytesMax = client.lineBytesMax
        nestingMax = client.nestingMax
    }
}
