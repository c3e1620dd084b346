import HatoModel
import HatoRPC

/// The tree as a user sees it: every call is made as that user, under the rules.
struct UserTree: Sendable {
    private let client: RPCClient

    /// - Parameter messages: how to reach messages, with a service key that may speak as users.
    init(_ messages: RPCClientConfiguration) { client = RPCClient(messages) }

    /// Throws `RPCError`.
    func call<Request: RPCRequest>(_ request: Request, as user: Caller.User) async throws -> Request.Result {
        var params = request.members
        params["as"] = ["uid": .string(user.uid), "token": .object(user.claims)]
        return try Request.decodeResult(try await client.call(method: Request.method, params: params))
    }

    /// Whether there is a node, whatever the rules say.
    func exists(_ path: TreePath, in database: DatabaseName?) async throws -> Bool {
        try await client.call(Messages.Get(database: database, path: path)).value != .null
    }

    func close() async { await client.close() }
}

extension RPCError {
    /// It is not a user that was refused, but the notifier's key: the rules name a path.
    var refusesNotifier: Bool {
        code == .unauthenticated || code == .methodNotFound || code == .permissionDenied && data["path"] == nil
    }

    static let messagesRefusesNotifier = RPCError.unavailable(
        reason: "messages_refuses_notifier",
        "Messages refuses the notifier's key: list it in the service-keys-file of messages, with as: true and the "
            + "methods \(NotifierServer.methodsOfMessages.sorted().joined(separator: ", "))")
}
