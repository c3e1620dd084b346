package import NIOCore
import NIOPosix

/// Makes the wires to one service. What they share is made once: the files of TLS are read here.
package final class RPCWireConnector: Sendable {
    /// Where the wires go, and what each of them may take.
    package let configuration: RPCWireConfiguration
    let tls: ClientTLS?

    /// Throws `TLSFileError`.
    package init(_ configuration: RPCWireConfiguration) throws {
        self.configuration = configuration
        tls = try configuration.tls.map { try ClientTLS($0, host: configuration.host) }
    }

    /// Begins to connect on `loop`, where this is called. The delegate hears of everything else there, in later turns.
    package func connect(on loop: any EventLoop, _ delegate: any RPCWireDelegate) -> RPCWire {
        let wire = RPCWire(self, on: loop, delegate)
        wire.connect()
        return wire
    }

    /// Begins to connect on `loop`, where this is called, for lines that are passed on as they are.
    ///
    /// - Parameters:
    ///   - opening: the method of the first request, without whose success nothing else is sent.
    ///   - params: of it, the whole object as JSON text.
    package func connectLines(
        on loop: any EventLoop, opening: String, params: [UInt8], _ delegate: any RPCLineWireDelegate
    ) -> RPCLineWire {
        let wire = RPCLineWire(self, on: loop, delegate)
        wire.connect(opening, params)
        return wire
    }

    /// A connected channel without handlers, which reads nothing yet.
    func channel(on loop: any EventLoop) -> EventLoopFuture<any Channel> {
        let unsent = SocketOutput.option(unsentBytesMax: configuration.socketUnsentBytesMax)
        return ClientChannel.bootstrap(on: loop, connectTimeout: configuration.connectTimeout)
            .channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(configuration.socketReceivedBytesMax))
            .channelOption(.tcpOption(unsent.option), value: unsent.value)
            .channelOption(.recvAllocator, value: ReadBuffers(maximum: Self.readBytesMax))
            // What one read brings is held while the wire does not deliver: not several.
            .channelOption(.maxMessagesPerRead, value: 1)
            .connect(host: configuration.host, port: configuration.port)
    }

    /// The largest buffer that a wire reads into.
    private static let readBytesMax = 64 << 10
}
