import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOWebSocket

/// Makes a WebSocket of a connection when one of its requests asks for it, whichever that is: proxies use connections
/// again.
///
/// NIO's own handler looks at the first request only, and at each name in `Upgrade` by a call inside the one before.
struct ProtocolSwitch {
    private let upgrader: NIOWebSocketServerUpgrader
    private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
    /// The other handlers that a socket needs no more.
    private let others: [any RemovableChannelHandler]

    /// - Parameter others: of HTTP, beside the decoder.
    init(
        _ upgrader: NIOWebSocketServerUpgrader, _ decoder: ByteToMessageHandler<HTTPRequestDecoder>,
        _ others: [any RemovableChannelHandler]
    ) {
        (self.upgrader, self.decoder, self.others) = (upgrader, decoder, others)
    }

    /// Completes, on the event loop of the channel, with the headers of the response that switches to the socket; fails
    /// when there is none.
    func headers(for head: HTTPRequestHead, on channel: any Channel) -> EventLoopFuture<HTTPHeaders> {
        upgrader.buildUpgradeResponse(
            channel: channel, upgradeRequest: head, initialResponseHeaders: HTTPHeaders())
    }

    /// Sends the response, and puts the handlers of the socket into the place of those of HTTP.
    ///
    /// - Parameter connection: the last one of these, which the context is of.
    func begin(
        _ head: HTTPRequestHead, _ headers: HTTPHeaders, _ connection: HTTPConnection, _ context: ChannelHandlerContext
    ) {
        let pipeline = context.pipeline.syncOperations
        let response = HTTPResponseHead(version: head.version, status: .switchingProtocols, headers: headers)
        // The compressor counts heads: it must not see this one.
        let below = try? pipeline.context(handlerType: HTTPResponseCompressor.self)
        below?.writeAndFlush(NIOAny(HTTPServerResponsePart.head(response)), promise: nil)
        for handler in others { pipeline.removeHandler(handler, promise: nil) }
        let channel = context.channel
        upgrader.upgrade(context: context, upgradeRequest: head).whenFailure { _ in channel.close(promise: nil) }
        pipeline.removeHandler(connection, promise: nil)
        // Bytes behind the request are frames: the decoder passes them on as it leaves.
        pipeline.removeHandler(decoder, promise: nil)
    }
}

extension HTTPRequestHead {
    /// Whether it asks for a WebSocket (RFC 6455 §4.1), and has no body.
    var opensSocket: Bool {
        method == .GET && version == .http1_1 && !headers.contains(name: "transfer-encoding")
            && headers[canonicalForm: "content-length"].allSatisfy { $0 == "0" } && asksForSocket
    }

    /// Whether it has the key of a WebSocket: 16 bytes in Base64 (RFC 6455 §4.2.1).
    var hasSocketKey: Bool {
        guard let key = headers.first(name: "sec-websocket-key")?.utf8, key.count == 24 else { return false }
        return key.suffix(2).elementsEqual("==".utf8)
            && key.dropLast(2).allSatisfy { Self.base64.contains($0) }
    }

    private static let base64 = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Whether it asks for a WebSocket.
    var asksForSocket: Bool {
        headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
    }
}
