import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase

/// Runs a stack whose notifier has a stand-in of Firebase Cloud Messaging.
func withFirebase(
    _ arguments: [String] = [], _ body: (TestStack, FCMStandIn) async throws -> Void
) async throws {
    let firebase = try await FCMStandIn()
    let result: Result<Void, any Error>
    do {
        try await TestStack.run(["--apps-file", firebase.appsFile] + arguments) { try await body($0, firebase) }
        result = .success(())
    } catch { result = .failure(error) }
    await firebase.stop()
    try result.get()
}

extension TestStack {
    /// Writes to the tree as a user.
    func set(_ path: String, _ value: JSONValue, as user: Auth.Session) async throws {
        let client = client(.messages, as: .user(idToken: user.idToken))
        _ = try await client.call(Messages.Set(path: try TreePath(path), value: value))
        await client.close()
    }

    /// Appends to the tree as a user.
    func push(_ path: String, _ value: JSONValue, as user: Auth.Session) async throws {
        let client = client(.messages, as: .user(idToken: user.idToken))
        _ = try await client.call(Messages.Push(path: try TreePath(path), value: value))
        await client.close()
    }

    /// Calls a service over a connection of its own.
    func call<Request: RPCRequest>(
        _ request: Request, of service: Service, as identity: Identity = .nobody
    ) async throws -> Request.Result {
        let client = client(service, as: identity)
        let result: Result<Request.Result, any Error>
        do { result = .success(try await client.call(request)) } catch { result = .failure(error) }
        await client.close()
        return try result.get()
    }

    /// Calls the notifier as an administrator.
    func notify<Request: RPCRequest>(_ request: Request) async throws -> Request.Result {
        try await call(request, of: .notifier, as: .administrator)
    }

    /// Waits until no delivery waits.
    func settled() async throws {
        try await eventually("nothing waits") { try await notify(Notifier.Stats()).pending == 0 }
    }
}
