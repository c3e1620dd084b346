import HatoMessages
import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// A messages service over an in-memory store for the rows of a table, called as an administrator by raw method names.
struct TableService {
    private let client: RPCClient
    fileprivate static let administrator = "administrator"

    static func with(
        rules: String = DefaultRules.deny, change: (inout MessagesConfiguration) -> Void = { _ in },
        _ body: (TableService) async throws -> Void
    ) async throws {
        var configuration = MessagesConfiguration(server: RPCServerConfiguration(service: "messages", version: "0"))
        configuration.firstRules = rules
        change(&configuration)
        var logger = Logger(label: "table")
        logger.logLevel = .critical
        let service = try MessagesServer(
            store: try MemoryStore(), configuration: configuration, authenticator: Names(), logger: logger)
        let (host, port) = try await service.start()
        var asking = RPCClientConfiguration(host: host, port: port)
        // No row tests a time limit, and a loaded machine may be slow.
        asking.timeout = .seconds(120)
        let client = RPCClient(asking.with(credential: administrator))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(TableService(client: client))) } catch { outcome = .failure(error) }
        await client.close()
        await service.shutdown(grace: .seconds(1))
        try outcome.get()
    }

    func call(_ method: String, _ params: JSONObject = [:]) async throws -> JSONValue {
        try await client.call(method: method, params: params)
    }

    /// The result of a call, or the error it is refused with.
    func response(
        _ method: String, _ params: JSONObject
    ) async throws -> Result<JSONValue, RPCError> {
        do {
            return .success(try await call(method, params))
        } catch let error as RPCError {
            return .failure(error)
        }
    }

    /// The whole tree, with its version.
    func everything() async throws -> [JSONValue] {
        var found: [JSONValue] = [try await call("messages.databases.list")]
        for method in ["messages.get", "messages.rules.get", "messages.indexes.list", "messages.stats"] {
            var answer = try await call(method, method == "messages.get" ? ["path": "/", "export": true] : [:])
            // Figures of the store itself, such as its memory.
            if case .object(var object) = answer {
                object["store"] = nil
                answer = .object(object)
            }
            found.append(answer)
        }
        return found
    }
}

private struct Names: Authenticator {
    func remembered(_ credential: String) -> Caller? {
        credential == TableService.administrator ? .administrator : .user(Caller.User(uid: credential))
    }

    func authenticate(_ credential: String) async throws -> Caller { remembered(credential) ?? .nobody }
}
