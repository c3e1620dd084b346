import HatoModel
import HatoRPC
import Logging
import Synchronization
import Testing

/// A value shared by threads of a test.
final class Shared<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    var current: Value { value.withLock { $0 } }

    func change(_ body: (inout Value) -> Void) { value.withLock { body(&$0) } }
}

/// A server with the methods of `Check` on a free port.
final class TestService: Sendable {
    struct Listener: Sendable {
        var connection: RPCConnection
        var subscription: String
    }

    let gates: Gates
    let authenticator: TestAuthenticator
    let listeners = Shared<[Listener]>([])
    /// What `check.unlisten` ended: the subscription, and who asked.
    let ended = Shared<[(subscription: String, uid: String?)]>([])
    let identityChanges = Shared<[RPCIdentityChange]>([])
    /// Kept by watches while it is not nil.
    let identityWork = Shared<[RPCIdentityWork]?>(nil)
    let closed = Shared(0)
    let server: RPCServer
    let port: Int

    init(_ change: (inout RPCServerConfiguration) -> Void = { _ in }) async throws {
        let gates = Gates()
        self.gates = gates
        authenticator = TestAuthenticator(gates: gates)
        var configuration = RPCServerConfiguration(service: "check", version: "1.2.3")
        configuration.methods = Check.methods
        change(&configuration)
        var router = RPCRouter()
        Self.addOrdered(&router, gates)
        Self.addIdentified(&router)
        Self.addListen(&router, gates, listeners, (identityChanges, identityWork), closed)
        router.handleInOrder(Check.Unlisten.self) { [ended] request, context, reply in
            ended.change { $0.append((request.subscription, context.caller.uid)) }
            reply.succeed(Empty())
        }
        server = RPCServer(
            configuration, router: router, authenticator: authenticator,
            logger: Logger(label: "check") { _ in SwiftLogNoOpLogHandler() })
        port = try await server.start().port
    }

    func stop() async { await server.shutdown(grace: .seconds(5)) }

    func peer(reads: Bool = true) async throws -> RawPeer { try await RawPeer(port: port, reads: reads) }

    private static func addOrdered(_ router: inout RPCRouter, _ gates: Gates) {
        router.handleInOrder(Check.Echo.self) { request, _, reply in reply.succeed(.init(value: request.value)) }
        router.handleInOrder(Check.Later.self) { request, _, reply in
            gates.whenOpen(request.gate) { reply.succeed(.init(gate: request.gate)) }
        }
        router.handleInOrder(Check.Read.self) { request, _, reply in
            gates.whenOpen(request.gate) { reply.succeed(.init(gate: request.gate)) }
        }
        router.handle(Check.Ordered.self) { request, _ in
            await gates.pass(request.gate)
            return .init(gate: request.gate)
        }
        router.handle(Check.Slow.self) { request, _ in
            await gates.pass(request.gate)
            return .init(gate: request.gate)
        }
        struct Broken: Error { var secret = "do not tell" }
        router.handleInOrder(Check.Fail.self) { _, _, reply in reply.fail(Broken()) }
        router.handleInOrder(Check.Refuse.self) { request, _, reply in
            reply.fail(RPCError.failedPrecondition(reason: "refused", "No", data: ["value": request.value]))
        }
        router.handleInOrder(Check.Forget.self) { _, _, _ in }
    }

    private static func addIdentified(_ router: inout RPCRouter) {
        router.handleInOrder(Check.Who.self) { _, context, reply in
            var room: String?
            if case .user(let user) = context.caller { room = user.claims["room"]?.string }
            reply.succeed(.init(uid: context.caller.uid, admin: context.caller.isAdministrator, room: room))
        }
        router.handleInOrder(Check.Client.self) { _, context, reply in
            reply.succeed(
                .init(
                    client: context.client, network: context.clientAddress.network,
                    connection: context.connection.client(speakingAs: .nobody)))
        }
        router.handleInOrder(Check.SignedIn.self) { _, _, reply in reply.succeed(Empty()) }
        router.handle(Check.Administration.self) { request, _ in .init(as: request.as) }
    }

    private static func addListen(
        _ router: inout RPCRouter, _ gates: Gates, _ listeners: Shared<[Listener]>,
        _ changes: (Shared<[RPCIdentityChange]>, Shared<[RPCIdentityWork]?>), _ closed: Shared<Int>
    ) {
        router.handleInOrder(Check.Listen.self) { request, context, reply in
            let subscription = context.openSubscription()
            let connection = context.connection
            listeners.change { $0.append(Listener(connection: connection, subscription: subscription)) }
            connection.onClose { closed.change { $0 += 1 } }
            _ = context.watchIdentity { change, work in
                changes.0.change { $0.append(change) }
                changes.1.change { $0?.append(work) }
            }
            guard let gate = request.gate else { return reply.succeed(.init(subscription: subscription)) }
            _ = connection.notify("check.event", subscription: subscription, members: EncodedJSON("\"n\":0"))
            gates.whenOpen(gate) { reply.succeed(.init(subscription: subscription)) }
        }
    }
}

struct Missing: Error { var what: String }
