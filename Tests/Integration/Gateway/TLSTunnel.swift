import HatoTesting
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import TestCertificates

/// Accepts plain connections on a port of its own, and carries what comes over TLS to a server: clients without TLS
/// then reach a server that has it. A plain connection ends with that of the server.
final class TLSTunnel: Sendable {
    let address: String
    private let listener: any Channel

    /// - Parameters:
    ///   - address: of the server, whose certificate must be one for `localhost` of the authority of these.
    ///   - newest: version of TLS that the client speaks.
    init(to address: String, _ certificates: TestCertificates, newest: TLSVersion = .tlsv13) async throws {
        let parts = address.split(separator: ":")
        guard let host = parts.first, let port = parts.last.flatMap({ Int($0) }) else {
            throw DeadlineExceeded("\(address) has a port")
        }
        var settings = TLSConfiguration.makeClientConfiguration()
        settings.trustRoots = .file(certificates.path("ca.pem"))
        settings.minimumTLSVersion = .tlsv1
        settings.maximumTLSVersion = newest
        let context = try NIOSSLContext(configuration: settings)
        let group = MultiThreadedEventLoopGroup.singleton
        listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { plain in
                plain.setOption(.autoRead, value: false).flatMap {
                    ClientBootstrap(group: plain.eventLoop)
                        .channelInitializer { server in
                            server.eventLoop.makeCompletedFuture {
                                try server.pipeline.syncOperations.addHandlers(
                                    NIOSSLClientHandler(context: context, serverHostname: "localhost"), Carrier(plain))
                            }
                        }
                        .connect(host: String(host), port: port)
                }.flatMapThrowing { server in
                    try plain.pipeline.syncOperations.addHandler(Carrier(server))
                }.flatMap { plain.setOption(.autoRead, value: true) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.address = "127.0.0.1:\(listener.localAddress?.port ?? 0)"
    }

    func stop() async throws { try await listener.close() }

    /// Writes what comes to another channel of the same event loop, and closes that in the end.
    private final class Carrier: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let other: any Channel

        init(_ other: any Channel) { self.other = other }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            other.writeAndFlush(unwrapInboundIn(data), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            other.close(promise: nil)
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
