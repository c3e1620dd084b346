import HatoModel
import HatoRPC

/// The caller of a method and its address.
struct CallOrigin: Sendable {
    var caller: Caller
    /// Nil for a call without a socket.
    var address: ClientAddress?

    init(_ context: RPCContext) {
        caller = context.caller
        address = context.connection.clientAddress
    }

    init(caller: Caller = .nobody, address: ClientAddress? = nil) {
        self.caller = caller
        self.address = address
    }

    /// The user; throws for a call without credential, and for an administrator as such.
    func user() throws -> Caller.User {
        switch caller {
        case .user(let user): return user
        case .administrator: throw AuthError.notAUser
        case .nobody:
            throw RPCError.unauthenticated(reason: "MISSING_ID_TOKEN", "This method needs an ID token in `auth`")
        }
    }
}

extension Caller.User {
    /// The time when the user presented a credential, in seconds; nil when an administrator impersonates the user.
    var authTime: Int64? { claims["auth_time"]?.number.flatMap { Int64(exactly: $0) } }
    /// Seconds; nil when an administrator impersonates the user.
    var issuedAt: Int64? { claims["iat"]?.number.flatMap { Int64(exactly: $0) } }
}
