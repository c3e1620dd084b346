import NIOCore
import NIOSSL
import NIOTLS

/// One connection on its event loop: gives what happens to the state machine, and does what it returns.
final class SMTPHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// What a message became on this connection.
    enum Ended {
        case finished(MailOutcome)
        /// Another connection may take it.
        case unsent
    }

    private let link: SMTPLink
    private let tls: SMTPTLS?
    private var machine: SMTPStateMachine
    private var tlsHandler: NIOSSLClientHandler?
    private var context: ChannelHandlerContext?
    private var deadline: Scheduled<Void>?
    private var problem: String?

    init(_ link: SMTPLink, _ configuration: SMTPConfiguration, _ tls: SMTPTLS?) {
        self.link = link
        self.tls = tls
        machine = SMTPStateMachine(
            SMTPStateMachine.Configuration(
                security: configuration.security, credentials: configuration.credentials, limits: configuration.limits))
    }

    var takesMessage: Bool { machine.takesMessage }
    var isEnding: Bool { machine.isEnding }

    // MARK: Of the link

    func submit(_ envelope: SMTPEnvelope) { run(machine.submitted(envelope)) }

    /// Called when there is no connection.
    func connectFailed(_ problem: String) { run(machine.closed(problem)) }

    func stop(_ reason: String) { run(machine.stopped(reason)) }

    // MARK: Of the channel

    /// Begins on a channel that is connected and reads nothing yet.
    func begin(on channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        if let tls, link.configuration.security == .implicitTLS {
            let handler = try tls.handler()
            tlsHandler = handler
            // The handshake begins when the handler is added: the one that waits for its end is there before.
            try pipeline.addHandler(self)
            try pipeline.addHandler(handler, position: .first)
        } else {
            try pipeline.addHandler(self)
        }
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        run(machine.connected(ownName: Self.literal(context.localAddress)))
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        deadline?.cancel()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        run(machine.received(unwrapInboundIn(data).readableBytesView))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            let isRight = tls?.namesHost(tlsHandler?.peerCertificate) == true
            run(isRight ? machine.tlsEstablished() : machine.closed(MailProblem.otherHost))
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        problem = MailProblem.words(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        run(machine.closed(problem))
        context.fireChannelInactive()
    }

    // MARK: Actions

    private func run(_ actions: [SMTPStateMachine.Action]) {
        var ended: Ended?
        for action in actions {
            switch action {
            case .send(let bytes): context?.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
            case .startTLS: startTLS()
            case .wait(let time): wait(time)
            case .finished(let outcome): ended = .finished(outcome)
            case .unsent: ended = .unsent
            case .close: context?.close(promise: nil)
            }
        }
        if !actions.isEmpty { link.changed(self, ended) }
    }

    private func startTLS() {
        guard let context, let tls else { return }
        do {
            let handler = try tls.handler()
            tlsHandler = handler
            try context.pipeline.syncOperations.addHandler(handler, position: .before(self))
        } catch {
            run(machine.closed(MailProblem.words(error)))
        }
    }

    private func wait(_ time: Duration?) {
        deadline?.cancel()
        deadline = nil
        guard let time, let context else { return }
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { [weak self] in
            guard let self else { return }
            run(machine.deadlinePassed())
        }
    }

    /// RFC 5321 §4.1.3.
    private static func literal(_ address: SocketAddress?) -> String {
        switch address {
        case .v4: "[\(address?.ipAddress ?? "127.0.0.1")]"
        case .v6: "[IPv6:\(address?.ipAddress ?? "::1")]"
        default: "[127.0.0.1]"
        }
    }
}
