import HatoModel
import NIOCore

/// A request whose method is known.
struct CurrentRequest {
    var id: String?
    var method: RPCMethod
    var params: JSONObject
    var byteCount: Int
    var memory: Int
    var sequence: UInt64
    var entry: Int?
    /// The response of the batch it is in may be late, so its own may.
    var isSlow: Bool { method.kind.isSlow }
    var caller: Caller?
    var isCallCredential = false
    /// Whether an administrator speaks as the caller.
    var isByAdministrator = false
    /// The name of the service key that the connection or the call has shown.
    var service: String?
    /// The address of the client whose call is forwarded; nil: the connection does not forward.
    var forwarded: ForwardedAddress?

    /// - Parameter account: the client that is charged for the connection.
    func context(_ caller: Caller, _ connection: RPCConnection, _ account: ClientAccount) -> RPCContext {
        // When the identity of the connection has ended, the caller of its requests is no user.
        let isUser = if case .user = caller { true } else { false }
        let isOfAccount = !isCallCredential && !isByAdministrator && isUser
        return RPCContext(
            caller: caller, connection: connection, isCallCredential: isCallCredential,
            isByAdministrator: isByAdministrator, service: service, method: method.name, byteCount: byteCount,
            sequence: sequence, chargedClient: isOfAccount ? account.name : nil, forwarded: forwarded)
    }

    /// Takes a parameter out of the params that is not one of the method itself.
    mutating func take(_ name: String) -> JSONValue? {
        guard !method.ownParameters.contains(name), let value = params[name] else { return nil }
        params[name] = nil
        return value
    }
}

/// What came in a line and waits: for its turn, for memory, or for its credential to be verified.
struct WaitingRequests {
    /// The line itself, when there is no memory for what is in it; then there is nothing else.
    var line: ByteBuffer?
    var lineSize = LineSize.long
    /// What the line keeps in memory.
    var lineMemory = 0
    /// The request whose turn is next, when it has been looked at already.
    var current: CurrentRequest?
    /// The entries of its batch that follow.
    var entries: [ReadEnvelope] = []
    var next = 0
    /// What the entries that follow take.
    var entryMemory = 0
    var sequence: UInt64 = 0

    var memory: Int {
        lineMemory + entryMemory + entries.capacity * MemoryLayout<ReadEnvelope>.stride + (current?.memory ?? 0)
    }
}
