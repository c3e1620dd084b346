public import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Testing

@testable import HatoMessages

/// A messages service over a memory store, on a port of its own, with clients of any identity.
struct RunningMessages {
    let service: MessagesServer
    let store: any Store
    let host: String
    let port: Int

    /// Starts a service, hands it to `body`, stops it.
    static func with(
        rules: String = DefaultRules.signedIn, store: (any Store)? = nil,
        change: (inout MessagesConfiguration) -> Void = { _ in }, logger: Logger? = nil,
        _ body: (RunningMessages) async throws -> Void
    ) async throws {
        let store: any Store = if let store { store } else { try MemoryStore() }
        var configuration = MessagesConfiguration(server: RPCServerConfiguration(service: "messages", version: "0"))
        configuration.firstRules = rules
        change(&configuration)
        var quiet = Logger(label: "test")
        quiet.logLevel = .critical
        let service = try MessagesServer(
            store: store, configuration: configuration, authenticator: NamedCallers(), logger: logger ?? quiet)
        let (host, port) = try await service.start()
        do { try await body(RunningMessages(service: service, store: store, host: host, port: port)) } catch {
            await service.shutdown(grace: .seconds(1))
            throw error
        }
        await service.shutdown(grace: .seconds(1))
    }

    var administrator: RPCClient { client("admin") }

    func user(_ uid: String) -> RPCClient { client("user:\(uid)") }

    func client(_ credential: String?) -> RPCClient {
        var configuration = RPCClientConfiguration(host: host, port: port)
        // No test is about this: a loaded machine may take long.
        configuration.timeout = .seconds(120)
        return RPCClient(credential.map { configuration.with(credential: $0) } ?? configuration)
    }
}

/// Believes `admin`, `user:NAME` and `until:MILLISECONDS`.
struct NamedCallers: Authenticator {
    func remembered(_ credential: String) -> Caller? {
        if credential == "admin" { return .administrator }
        if credential.hasPrefix("until:") {
            return .user(Caller.User(uid: "mortal", expiresAt: Int64(credential.dropFirst(6))))
        }
        guard credential.hasPrefix("user:") else { return nil }
        return .user(Caller.User(uid: String(credential.dropFirst(5))))
    }

    func authenticate(_ credential: String) async throws -> Caller {
        guard let caller = remembered(credential) else {
            throw RPCError.unauthenticated(reason: "INVALID_ID_TOKEN", "No such caller")
        }
        return caller
    }
}

/// What a call was refused with.
func refusal(_ body: () async throws -> some Any) async -> RPCError? {
    do {
        _ = try await body()
        return nil
    } catch { return error as? RPCError }
}

extension TreePath: ExpressibleByStringLiteral {
    public init(stringLiteral text: String) {
        do { self = try TreePath(text) } catch { preconditionFailure("\(error)") }
    }
}
