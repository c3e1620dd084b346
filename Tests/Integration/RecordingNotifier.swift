import HatoModel
import HatoRPC
import Logging
import Synchronization

/// A server with the methods of the notifier, which keeps the calls and returns the example of each method.
final class RecordingNotifier: Sendable {
    struct Call: Sendable {
        var method: String
        var params: JSONObject
        /// The credential of a user; nil: the administrator.
        var uid: String?
    }

    private final class Journal: Sendable {
        let calls = Mutex<[Call]>([])

        func note<Request: RPCRequest>(_ request: Request, _ context: RPCContext) {
            let call = Call(method: Request.method, params: request.members, uid: context.caller.uid)
            calls.withLock { $0.append(call) }
        }
    }

    /// Any credential but the administrator's is the name of a user.
    private struct NameAuthenticator: Authenticator {
        func remembered(_ credential: String) -> Caller? { nil }
        func authenticate(_ credential: String) async throws -> Caller {
            credential == RecordingNotifier.administratorKey ? .administrator : .user(Caller.User(uid: credential))
        }
    }

    static let administratorKey = "administrator-key-of-the-recording"

    let address: String
    private let server: RPCServer
    private let journal: Journal

    init() async throws {
        let journal = Journal()
        var router = RPCRouter()
        for type in Notifier.methods where type.method != Notifier.Follow.method { Self.add(type, &router, journal) }
        router.handle(Notifier.Follow.self) { request, context in
            journal.note(request, context)
            var result = Notifier.Follow.example.result
            result.subscription = context.openSubscription()
            var members = Notifier.Event.example.members
            members["subscription"] = nil
            let text = EncodedJSON(.object(members)).text.dropFirst().dropLast()
            _ = context.connection.notify(
                Notifier.Event.method, subscription: result.subscription, members: EncodedJSON(String(text)))
            return result
        }
        var configuration = RPCServerConfiguration(service: "notifier", version: "1")
        configuration.port = 0
        configuration.methods = Notifier.methods
        server = RPCServer(
            configuration, router: router, authenticator: NameAuthenticator(), logger: Logger(label: "recording"))
        self.journal = journal
        let address = try await server.start()
        self.address = "\(address.host):\(address.port)"
    }

    private static func add<Request: RPCRequest>(
        _ type: Request.Type, _ router: inout RPCRouter, _ journal: Journal
    ) {
        router.handle(type) { request, context in
            journal.note(request, context)
            return type.example.result
        }
    }

    /// The calls since the last look.
    func takeCalls() -> [Call] {
        journal.calls.withLock { calls in
            defer { calls = [] }
            return calls
        }
    }

    func stop() async { await server.shutdown(grace: .seconds(1)) }
}
