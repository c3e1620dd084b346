import NIOCore
import NIOPosix

/// The one connection of a client, and the messages that wait for it, on one event loop.
///
/// The connection is made when a message comes, and made again when it has ended. A failure before a message could be
/// sent (no connection, a refused password) also fails the messages that wait: each of them would wait for the same.
///
/// `@unchecked Sendable`: everything but the constants is touched on `loop` only.
final class SMTPLink: @unchecked Sendable {
    struct Waiting {
        var id: UInt64
        var envelope: SMTPEnvelope
        var completion: EventLoopPromise<MailOutcome>
    }

    let loop: any EventLoop
    let configuration: SMTPConfiguration
    private let tls: SMTPTLS?

    // Loop only.
    private var waiting: [Waiting] = []
    private var current: Waiting?
    private var connection: SMTPHandler?
    private var isClosed = false

    /// Throws `MailFieldError`.
    init(_ configuration: SMTPConfiguration) throws(MailFieldError) {
        self.configuration = configuration
        tls =
            configuration.security == .none
            ? nil
            : try SMTPTLS(
                host: configuration.url.host, authorityFile: configuration.authorityFile,
                authorities: configuration.authorities)
        loop = MultiThreadedEventLoopGroup.singleton.next()
    }

    // MARK: Messages

    func add(_ message: Waiting) {
        if isClosed { return fail([message], Self.notSent(Self.closing)) }
        guard waiting.count < configuration.limits.waitingMax else {
            return fail([message], Self.notSent("\(waiting.count) messages wait for the server already"))
        }
        waiting.append(message)
        advance()
    }

    /// Its sender does not wait any more. One that is being sent loses its connection: it is not known whether the
    /// server has it.
    func abandon(_ id: UInt64) {
        if current?.id == id {
            connection?.stop(Self.abandoned)
        } else if let index = waiting.firstIndex(where: { $0.id == id }) {
            fail([waiting.remove(at: index)], Self.notSent(Self.abandoned))
        }
    }

    func close() {
        isClosed = true
        failWaiting(Self.notSent(Self.closing))
        connection?.stop(Self.closing)
    }

    private static let closing = "the client is closed"
    private static let abandoned = "its sender does not wait any more"

    private func advance() {
        guard current == nil, !waiting.isEmpty else { return }
        if let connection {
            guard connection.takesMessage else { return }
            submit(to: connection)
        } else {
            let handler = SMTPHandler(self, configuration, tls)
            connection = handler
            submit(to: handler)
            connect(handler)
        }
    }

    private func submit(to connection: SMTPHandler) {
        let message = waiting.removeFirst()
        current = message
        connection.submit(message.envelope)
    }

    private static func notSent(_ text: String) -> MailFailure {
        MailFailure(step: .waiting, text: text, concernsServer: false)
    }

    private func fail(_ messages: [Waiting], _ failure: MailFailure) {
        for message in messages { message.completion.succeed(.temporary(failure)) }
    }

    private func failWaiting(_ failure: MailFailure) {
        let failed = waiting
        waiting = []
        fail(failed, failure)
    }

    // MARK: The connection

    private func connect(_ handler: SMTPHandler) {
        let bound = NIOLoopBound(handler, eventLoop: loop)
        // The address that is reached first gets the handlers, and is read from then on.
        ClientBootstrap(group: loop)
            .connectTimeout(TimeAmount(configuration.limits.connectTimeout))
            .channelOption(.autoRead, value: false)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: configuration.url.host, port: configuration.url.port)
            .assumeIsolated()
            .whenComplete { [self] outcome in
                switch outcome {
                case .success(let channel): begin(bound.value, on: channel)
                case .failure(let error): bound.value.connectFailed(MailProblem.words(error))
                }
            }
    }

    private func begin(_ handler: SMTPHandler, on channel: any Channel) {
        do {
            guard configuration.security != .none || Self.isLoopback(channel.remoteAddress) else {
                throw MailFieldError("mail-tls", "can only be none for a server on this machine")
            }
            guard !handler.isEnding else { return channel.close(promise: nil) }
            try handler.begin(on: channel)
            // It fails when the channel has closed, which its handlers notice themselves.
            _ = channel.setOption(.autoRead, value: true)
        } catch {
            channel.close(promise: nil)
            handler.connectFailed(MailProblem.words(error))
        }
    }

    private static func isLoopback(_ address: SocketAddress?) -> Bool {
        guard let text = address?.ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.")
    }

    /// Called by the handler after what it did.
    func changed(_ handler: SMTPHandler, _ ended: SMTPHandler.Ended?) {
        if connection === handler, handler.isEnding { connection = nil }
        if let ended, let message = current {
            current = nil
            switch ended {
            case .finished(let outcome):
                message.completion.succeed(outcome)
                if case .temporary(let failure) = outcome, failure.failsEveryMessage { failWaiting(failure) }
            case .unsent: waiting.insert(message, at: 0)
            }
        }
        advance()
    }
}

extension MailFailure {
    /// Whether the server cannot be reached, or gives no service: each message that waits would fail likewise.
    fileprivate var failsEveryMessage: Bool {
        guard concernsServer else { return false }
        return switch step {
        case .connection, .handshake, .greeting, .hello, .startTLS, .authentication: true
        case .sender, .recipient, .data, .content, .waiting: false
        }
    }
}
