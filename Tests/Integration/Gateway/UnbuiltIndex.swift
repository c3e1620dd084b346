import HatoModel
import HatoRPC
import Logging
import Synchronization

/// A stand-in for messages that builds its one index for so many reads: it refuses these, as messages does.
final class UnbuiltIndex: Sendable {
    private struct AnyAuthenticator: Authenticator {
        func remembered(_ credential: String) -> Caller? { .administrator }
        func authenticate(_ credential: String) async throws -> Caller { .administrator }
    }

    private final class Reads: Sendable {
        /// How many have come, and how many of these are refused.
        let state = Mutex((count: 0, refused: 0))
    }

    let address: String
    private let server: RPCServer
    private let reads: Reads

    init() async throws {
        let reads = Reads()
        var router = RPCRouter()
        for type in Messages.methods
        where ![Messages.Get.method, Messages.Listen.method].contains(type.method) { Self.add(type, &router) }
        router.handle(Messages.Get.self) { _, _ in
            let isBuilt = reads.state.withLock { state in
                state.count += 1
                return state.count > state.refused
            }
            guard isBuilt else {
                throw RPCError.failedPrecondition(reason: "index_building", "The index is still being built")
            }
            return Messages.Get.Result(value: ["m1": ["date": 1]], keys: ["m1"], version: 1)
        }
        router.handle(Messages.Listen.self) { _, context in
            Messages.Listen.Result(
                subscription: context.openSubscription(), version: 1, epoch: "e", warning: .noIndex)
        }
        var configuration = RPCServerConfiguration(service: "messages", version: "1")
        configuration.port = 0
        configuration.methods = Messages.methods
        server = RPCServer(
            configuration, router: router, authenticator: AnyAuthenticator(), logger: Logger(label: "unbuilt"))
        self.reads = reads
        let address = try await server.start()
        self.address = "\(address.host):\(address.port)"
    }

    private static func add<Request: RPCRequest>(_ type: Request.Type, _ router: inout RPCRouter) {
        router.handle(type) { _, _ in type.example.result }
    }

    /// Refuses the next reads.
    func refuse(_ count: Int) { reads.state.withLock { $0 = (0, count) } }

    /// The reads since then.
    var count: Int { reads.state.withLock { $0.count } }

    func stop() async { await server.shutdown(grace: .seconds(1)) }
}
