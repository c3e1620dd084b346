import HatoModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket

/// The WebSockets of one client of Firebase, one after the other.
enum FirebaseConnection {
    private typealias Frames = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    /// Connects, and connects again after each loss, until the task is cancelled.
    static func run(_ client: FirebaseClient, port: Int) async {
        while !Task.isCancelled {
            // However a connection ends, the client comes back: only what it gets can be wrong.
            if let channel = try? await open(port) { try? await exchange(client, on: channel) }
            client.isDisconnected()
            // That of an SDK is longer.
            try? await Task.sleep(for: .milliseconds(Int.random(in: 5...100)))
        }
    }

    /// Nil if the gateway takes no WebSocket.
    private static func open(_ port: Int) async throws -> Frames? {
        let negotiation = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup).connect(
            host: "127.0.0.1", port: port
        ) { channel in
            channel.eventLoop.makeCompletedFuture {
                let upgrader = NIOTypedWebSocketClientUpgrader<Frames?>(maxFrameSize: 1 << 20) { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try Frames(wrappingChannelSynchronously: channel) }
                }
                let head = HTTPRequestHead(
                    version: .http1_1, method: .GET, uri: "/.ws?v=5&ns=hato", headers: ["Host": "localhost"])
                let upgrade = NIOTypedHTTPClientUpgradeConfiguration<Frames?>(
                    upgradeRequestHead: head, upgraders: [upgrader]
                ) { channel in channel.close().map { nil } }
                var configuration = NIOUpgradableHTTPClientPipelineConfiguration(upgradeConfiguration: upgrade)
                // The first message may come in one piece with the response.
                configuration.leftOverBytesStrategy = .forwardBytes
                return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                    configuration: configuration)
            }
        }
        return try await negotiation.get()
    }

    /// Gives the client its messages and sends what it responds, until the connection ends.
    private static func exchange(_ client: FirebaseClient, on channel: Frames) async throws {
        try await channel.executeThenClose { frames, writer in
            for try await frame in frames {
                switch frame.opcode {
                case .text:
                    let texts = client.take(Array(frame.unmaskedData.readableBytesView))
                    try await writer.write(contentsOf: texts.map { Self.frame(.text, ByteBuffer(bytes: $0)) })
                case .ping: try await writer.write(Self.frame(.pong, frame.unmaskedData))
                default: return
                }
            }
        }
    }

    private static func frame(_ opcode: WebSocketOpcode, _ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
    }
}
