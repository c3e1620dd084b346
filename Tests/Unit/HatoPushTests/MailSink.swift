import Foundation
import HatoMail
import NIOCore
import NIOPosix
import Synchronization

/// A server of SMTP on this machine that takes what it gets, or replies to a command as a test says.
final class MailSink: Sendable {
    private struct State {
        var replies: [String: String]
        var connections = 0
        var commands: [String] = []
        var messages: [String] = []
    }

    private let state: Mutex<State>
    private let channel: Mutex<(any Channel)?> = Mutex(nil)

    /// - Parameter replies: by the first word of a command, `CONTENT` for that to a message.
    init(_ replies: [String: String] = [:]) async throws {
        state = Mutex(State(replies: replies))
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(MailSinkConnection(self))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.channel.withLock { $0 = channel }
    }

    var url: String { "smtp://127.0.0.1:\(channel.withLock { $0?.localAddress?.port ?? 0 })" }
    var messages: [String] { state.withLock { $0.messages } }
    var commands: [String] { state.withLock { $0.commands } }
    var connections: Int { state.withLock { $0.connections } }
    func reply(to command: String, _ reply: String?) { state.withLock { $0.replies[command] = reply } }
    func stop() async { try? await channel.withLock { $0 }?.close() }

    fileprivate func connected() { state.withLock { $0.connections += 1 } }

    fileprivate func got(_ command: String) -> String {
        let verb = command.split(separator: " ").first.map { $0.uppercased() } ?? ""
        let usual = ["DATA": "354 go on", "QUIT": "221 bye"][verb] ?? "250 ok"
        return state.withLock { state in
            state.commands.append(command)
            return state.replies[verb] ?? usual
        }
    }

    fileprivate func got(message: String) -> String {
        state.withLock { state in
            state.messages.append(message)
            return state.replies["CONTENT"] ?? "250 queued"
        }
    }
}

private final class MailSinkConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let sink: MailSink
    private var text = ""
    private var isInContent = false

    init(_ sink: MailSink) { self.sink = sink }

    func channelActive(context: ChannelHandlerContext) {
        sink.connected()
        send("220 sink.example", context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        text += String(buffer: unwrapInboundIn(data))
        while let end = text.range(of: isInContent ? "\r\n.\r\n" : "\r\n") {
            let taken = String(text[..<end.lowerBound])
            text.removeSubrange(..<end.upperBound)
            if isInContent {
                isInContent = false
                send(sink.got(message: taken), context)
            } else {
                let reply = sink.got(taken)
                isInContent = reply.hasPrefix("354")
                send(reply, context)
            }
        }
    }

    private func send(_ reply: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: reply + "\r\n")), promise: nil)
    }
}
