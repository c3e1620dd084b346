import NIOCore
import NIOPosix

/// One GET over a plain socket, with the response as text.
enum RawHTTP {
    static func get(_ host: String, _ port: Int, path: String) async throws -> String {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connect(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(
                ByteBuffer(string: "GET \(path) HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n"))
            var text = ""
            for try await part in inbound { text += String(buffer: part) }
            return text
        }
    }
}
