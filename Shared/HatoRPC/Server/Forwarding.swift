import HatoModel

/// The address of a client whose calls another program forwards (protocol §2, `from`). It stands for the address of the
/// socket in limits and logs.
///
/// A class: each request of a connection that forwards holds one.
public final class ForwardedAddress: Sendable {
    /// As limits count it.
    public let client: ClientAddress
    /// As it was given, or as the socket has it: an IP address.
    let text: String

    /// Of calls of a connection that forwards, without an address of their own: that of the socket.
    init(ofPeer connection: RPCConnection) {
        client = ClientAddress(forwardedBy: connection.socketAddress)
        text = connection.remoteAddress
    }

    /// Throws `RPCError` that names `from`.
    init(_ value: JSONValue) throws(RPCError) {
        guard let text = value.string else {
            throw .invalidParams("from", "'from' must be a string, an IP address, e.g. \"203.0.113.7\"")
        }
        guard let client = ClientAddress(forwarded: text) else { throw .invalidFrom }
        self.client = client
        self.text = text
    }
}

/// What `session.forward` makes of a connection: it speaks for clients of other addresses. Pure.
struct Forwarding: Sendable {
    /// Of calls without `from`; nil: these count for the address of the socket.
    var from: ForwardedAddress?
    /// Whether all later lines are written by the client of `from`: they have no right of one that forwards.
    var isOfClient = false

    private init() {}

    /// - Parameters:
    ///   - params: without `auth`.
    ///   - caller: the holder of the credential that was shown.
    ///
    /// Throws `RPCError`.
    init(_ params: JSONObject, by caller: Caller) throws(RPCError) {
        guard caller.mayForward else { throw .onlyForwardersMayForward }
        let known = Session.Forward.fields.names
        if let name = params.members.first(where: { !known.contains($0.name) })?.name.shortened(to: 200) {
            throw .invalidParams(name, "'\(name)' is no known parameter", reason: "unknown_parameter")
        }
        from = try Self.address(of: params["from"], on: Forwarding())
        switch params["clientLines"] {
        case nil, .null?: break
        case .bool(let isOfClient)?: self.isOfClient = isOfClient
        default: throw .invalidParams("clientLines", "'clientLines' must be true or false, e.g. true")
        }
        if isOfClient, from == nil {
            throw .invalidParams("from", "'clientLines' needs 'from', the address of the client, e.g. \"203.0.113.7\"")
        }
    }

    /// The address of the client of a call.
    ///
    /// - Parameters:
    ///   - from: `from` of the call.
    ///   - forwarding: nil: the connection does not forward.
    /// - Returns: nil: that of the socket.
    ///
    /// Throws `RPCError`.
    static func address(
        of from: JSONValue?, on forwarding: Forwarding?
    ) throws(RPCError) -> ForwardedAddress? {
        // As of every optional parameter, null counts as absent.
        guard let from, from != .null else { return forwarding?.from }
        guard let forwarding, !forwarding.isOfClient else { throw .onlyForwardersMayUseFrom }
        return try ForwardedAddress(from)
    }
}

extension Caller {
    fileprivate var mayForward: Bool {
        switch self {
        case .administrator: true
        case .service(let service): service.mayForward
        case .user, .variable, .nobody: false
        }
    }
}
