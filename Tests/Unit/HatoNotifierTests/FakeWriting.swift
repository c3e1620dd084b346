import HatoModel
import HatoRPC

/// A write that messages was asked for.
struct FakeWrite: Sendable {
    var method: String
    var path: String
    var value: JSONValue
    /// The user it is made as.
    var uid: String?
    var claims: JSONObject
    /// Of a push.
    var key: String?

    init(_ method: String, _ path: TreePath, _ value: JSONValue, _ caller: Caller, key: String? = nil) {
        (self.method, self.path, self.value, self.key) = (method, path.text, value, key)
        uid = caller.uid
        claims = if case .user(let user) = caller { user.claims } else { [:] }
    }
}

/// What messages does with writes.
struct FakeWriting: Sendable {
    var writes: [FakeWrite] = []
    var failure: RPCError?
    var gate: Gate?
    var rulesDenySecond = false

    mutating func apply(_ write: FakeWrite, to nodes: inout [String: JSONValue]) throws {
        if let failure { throw failure }
        let path = write.key.map { "\(write.path)/\($0)" } ?? write.path
        if write.key != nil, nodes[path] != nil {
            if rulesDenySecond { throw RPCError.permissionDenied(path: path) }
            throw RPCError(.alreadyExists, reason: "key_exists", "taken")
        }
        writes.append(write)
        nodes[path] = write.value == .null ? nil : write.value
    }
}
