import HatoModel
import Logging
import NIOCore
import NIOPosix
import Synchronization

/// What all connections of a server share.
final class ServerState: Sendable {
    let limits: RPCLimits
    let methods: [String: RPCMethod]
    let authenticator: any Authenticator
    let logger: Logger
    let now: @Sendable () -> Int64
    let budget: ProcessBudget
    let admission: ConnectionGate
    /// Notices that any peer can cause.
    let notices: ThrottledNotices
    /// Runs what would keep a loop too long on another thread.
    let runElsewhere: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let nextConnection = Atomic<UInt64>(1)

    init(
        _ configuration: RPCServerConfiguration, methods: [String: RPCMethod], authenticator: any Authenticator,
        logger: Logger,
        runElsewhere: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { body in
            NIOThreadPool.singleton.submit { _ in body() }
        }
    ) {
        self.runElsewhere = runElsewhere
        limits = configuration.limits
        now = configuration.now
        self.methods = methods
        self.authenticator = authenticator
        self.logger = logger
        budget = ProcessBudget(configuration.limits)
        notices = ThrottledNotices(logger)
        admission = ConnectionGate(configuration.limits, notices)
    }

    func noticeFailure(_ error: any Error, of connection: RPCConnection, isHandshake: Bool) {
        if isHandshake {
            notices.notice(
                .failedHandshake, "a TLS handshake failed",
                ["peer": "\(connection.shownAddress)", "error": "\(error)"])
        } else {
            logger.debug("connection failed", metadata: ["error": "\(error)"])
        }
    }

    func newConnectionID() -> UInt64 {
        nextConnection.wrappingAdd(1, ordering: .relaxed).oldValue
    }
}
