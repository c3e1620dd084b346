import NIOCore
import NIOPosix

/// The channels of connections to a server.
enum ClientChannel {
    /// Makes channels that read nothing before `start`. A name may have several addresses, and several of them be tried
    /// at the same time: only the channel that the attempt ends with gets handlers.
    static func bootstrap(on loop: any EventLoop, connectTimeout: Duration) -> ClientBootstrap {
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(TimeAmount(connectTimeout))
            .channelOption(.autoRead, value: false)
            .channelOption(.socketOption(.so_keepalive), value: 1)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
        return KeepAlive.options(RPCLimits())
            .reduce(bootstrap) { $0.channelOption(.tcpOption($1.option), value: $1.value) }
    }

    /// Adds the handlers of a connected channel, and lets it read. On its event loop. Throws what TLS or the channel,
    /// which may have closed, cannot do.
    static func start(_ channel: any Channel, _ tls: ClientTLS?, _ handler: any ChannelHandler) throws {
        if let tls { try channel.pipeline.syncOperations.addHandlers(tls.handler(), TLSPieces()) }
        try channel.pipeline.syncOperations.addHandler(handler)
        try channel.syncOptions?.setOption(.autoRead, value: true)
    }
}
