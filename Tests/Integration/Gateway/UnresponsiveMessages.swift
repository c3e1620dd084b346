import HatoModel
import HatoRPC
import Logging
import Synchronization

/// A stand-in for messages that takes calls and leaves them without a response.
final class UnresponsiveMessages: Sendable {
    private struct AnyAuthenticator: Authenticator {
        func remembered(_ credential: String) -> Caller? { .administrator }
        func authenticate(_ credential: String) async throws -> Caller { .administrator }
    }

    /// Whatever would respond to the calls.
    private final class Waiting: Sendable {
        let replies = Mutex<[any Sendable]>([])
    }

    let address: String
    private let server: RPCServer
    private let waiting: Waiting

    init() async throws {
        let waiting = Waiting()
        var router = RPCRouter()
        for type in Messages.methods { Self.add(type, &router, waiting) }
        var configuration = RPCServerConfiguration(service: "messages", version: "1")
        configuration.port = 0
        configuration.methods = Messages.methods
        server = RPCServer(
            configuration, router: router, authenticator: AnyAuthenticator(), logger: Logger(label: "unresponsive"))
        self.waiting = waiting
        let address = try await server.start()
        self.address = "\(address.host):\(address.port)"
    }

    private static func add<Request: RPCRequest>(
        _ type: Request.Type, _ router: inout RPCRouter, _ waiting: Waiting
    ) {
        // A reply that is dropped would respond.
        router.handleInOrder(type) { _, _, reply in waiting.replies.withLock { $0.append(reply) } }
    }

    /// The calls that have come.
    var count: Int { waiting.replies.withLock { $0.count } }

    /// Stops, and cuts its connections soon: the calls get no response.
    func stop() async { await server.shutdown(grace: .milliseconds(1)) }
}
