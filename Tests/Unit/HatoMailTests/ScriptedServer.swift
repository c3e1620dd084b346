import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import TestCertificates

/// A server that behaves as a test says, on a free port: at each step it replies, does nothing, or drops the
/// connection. It keeps what it got.
final class ScriptedServer: Sendable {
    enum Step: String, CaseIterable {
        case greeting, hello = "EHLO", startTLS = "STARTTLS", handshake, helloAgain, auth = "AUTH", mail = "MAIL",
            rcpt = "RCPT", data = "DATA", content, rset = "RSET", quit = "QUIT"
    }

    enum Behaviour: Sendable {
        case reply(String)
        case silence
        case drop
        /// Replies, then drops the connection.
        case last(String)
    }

    struct Received: Sendable {
        var connections = 0
        var open = 0
        var commands: [String] = []
        /// As they came, with the dots of SMTP.
        var messages: [[UInt8]] = []
    }

    private let state: Mutex<(Received, [Step: Behaviour])>
    private let channel: Mutex<(any Channel)?> = Mutex(nil)
    let tls: NIOSSLContext?
    let isImplicit: Bool

    /// - Parameter certificate: the name of the server's files; nil for a server without TLS.
    init(
        _ behaviours: [Step: Behaviour] = [:], _ certificates: TestCertificates, certificate: String? = "server",
        isImplicit: Bool = false
    ) async throws {
        var behaviours = behaviours
        if certificate == nil, behaviours[.hello] == nil {
            behaviours[.hello] = .reply("250-mail.example\r\n250 AUTH PLAIN LOGIN")
        }
        state = Mutex((Received(), behaviours))
        self.isImplicit = isImplicit
        tls = try certificate.map { name in
            let chain = try NIOSSLCertificate.fromPEMFile(certificates.path("\(name).pem"))
            let key = try NIOSSLPrivateKey(file: certificates.path("\(name).key"), format: .pem)
            return try NIOSSLContext(
                configuration: .makeServerConfiguration(
                    certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key)))
        }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if isImplicit, let tls = self.tls {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls))
                    }
                    try channel.pipeline.syncOperations.addHandler(ScriptedConnection(self))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.channel.withLock { $0 = channel }
    }

    var port: Int { channel.withLock { $0?.localAddress?.port ?? 0 } }
    var received: Received { state.withLock { $0.0 } }
    func change(_ step: Step, _ behaviour: Behaviour?) { state.withLock { $0.1[step] = behaviour } }
    func note(_ body: (inout Received) -> Void) { state.withLock { body(&$0.0) } }

    func behaviour(_ step: Step) -> Behaviour {
        state.withLock { $0.1[step] } ?? .reply(Self.replies[step] ?? "502 unknown")
    }

    func stop() async { try? await channel.withLock { $0 }?.close() }

    private static let replies: [Step: String] = [
        .greeting: "220 mail.example", .hello: Mails.offers, .startTLS: "220 go",
        .helloAgain: "250-mail.example\r\n250-SMTPUTF8\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN", .auth: "235 welcome",
        .mail: "250 ok", .rcpt: "250 ok", .data: "354 go on", .content: "250 queued", .rset: "250 ok",
        .quit: "221 bye",
    ]
}

private final class ScriptedConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let server: ScriptedServer
    private var bytes: [UInt8] = []
    private var isInContent = false
    private var isEncrypted = false
    /// What arrives is not read any more.
    private var isDeaf = false

    init(_ server: ScriptedServer) { self.server = server }

    func channelActive(context: ChannelHandlerContext) {
        server.note {
            $0.connections += 1
            $0.open += 1
        }
        isEncrypted = server.isImplicit
        perform(.greeting, context)
    }

    func channelInactive(context: ChannelHandlerContext) { server.note { $0.open -= 1 } }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isDeaf { return }
        bytes += unwrapInboundIn(data).readableBytesView
        while true {
            if isInContent {
                let end = Array("\r\n.\r\n".utf8)
                guard bytes.count >= end.count, bytes.suffix(end.count).elementsEqual(end) else { return }
                let message = bytes
                server.note { $0.messages.append(message) }
                bytes = []
                isInContent = false
                perform(.content, context)
            } else {
                guard let end = bytes.firstIndex(of: 10) else { return }
                let line = String(decoding: bytes[..<end], as: UTF8.self)
                bytes.removeSubrange(...end)
                command(line.hasSuffix("\r") ? String(line.dropLast()) : line, context)
            }
        }
    }

    private func command(_ line: String, _ context: ChannelHandlerContext) {
        server.note { $0.commands.append(line) }
        let verb = line.split(separator: " ").first.map { $0.uppercased() } ?? ""
        let step = ScriptedServer.Step(rawValue: verb)
        perform(step == .hello && isEncrypted ? .helloAgain : step, context)
    }

    private func perform(_ step: ScriptedServer.Step?, _ context: ChannelHandlerContext) {
        guard let step else { return send("500 what", context) }
        switch server.behaviour(step) {
        case .silence: break
        case .drop: context.close(promise: nil)
        case .reply(let text):
            send(text, context)
            if step == .data, text.hasPrefix("354") { isInContent = true }
            if step == .startTLS, text.hasPrefix("220") { startTLS(context) }
            if step == .quit { context.close(promise: nil) }
        case .last(let text):
            send(text, context)
            context.close(promise: nil)
        }
    }

    private func send(_ text: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text + "\r\n")), promise: nil)
    }

    private func startTLS(_ context: ChannelHandlerContext) {
        isEncrypted = true
        switch server.behaviour(.handshake) {
        case .drop, .last: context.close(promise: nil)
        case .silence: isDeaf = true
        case .reply:
            guard let tls = server.tls else { return }
            try? context.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls), position: .before(self))
        }
    }
}
