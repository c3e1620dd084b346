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

    /// A node of at most so many bytes as JSON. Throws `RPCError`; `too_big` for a larger one.
    func value(_ path: TreePath, as user: Caller.User, bytesMax: Int) async throws -> JSONValue {
        var params = Messages.Get(path: path).members
        params["as"] = ["uid": .string(user.uid), "token": .object(user.claims)]
        return try await value(params, bytesMax: bytesMax)
    }

    /// The same, whatever the rules say; nil for a larger one.
    func value(_ path: TreePath, in database: DatabaseName?, bytesMax: Int) async throws -> JSONValue? {
        do {
            return try await value(Messages.Get(database: database, path: path).members, bytesMax: bytesMax)
        } catch let error as RPCError where error.reason == "too_big" {
            return nil
        }
    }

    private func value(_ params: JSONObject, bytesMax: Int) async throws -> JSONValue {
        let text = try await client.resultText(
            method: Messages.Get.method, params: params, bytesMax: bytesMax + Self.resultBytes)
        return try Messages.Get.decodeResult(try JSONParser.parse(text, depth: 128)).value
    }

    /// What a result has besides the value.
    private static let resultBytes = 1_024

    /// Whether there is a node, whatever the rules say.
    func exists(_ path: TreePath, in database: DatabaseName?) async throws -> Bool {
        try await client.call(Messages.Get(database: database, path: path, form: .shallow)).value != .null
    }

    func close() async { await client.close() }
}

extension RPCError {
    /// The rules say no to a user.
    var isByRules: Bool { code == .permissionDenied && data["path"] != nil }

    /// It is not a user that was refused, but the notifier's key: the rules name a path.
    var refusesNotifier: Bool {
        code == .unauthenticated || code == .methodNotFound || code == .permissionDenied && data["path"] == nil
    }

    static let messagesRefusesNotifier = RPCError.unavailable(
        reason: "messages_refuses_notifier",
        "Messages refuses the notifier's key: list it in the service-keys-file of messages, with as: true and the "
            + "methods \(NotifierServer.methodsOfMessages.sorted().joined(separator: ", "))")
}
