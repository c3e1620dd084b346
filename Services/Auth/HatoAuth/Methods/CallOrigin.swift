import HatoModel
import HatoRPC

/// What a method knows of who calls it.
struct CallOrigin: Sendable {
    var caller: Caller
    /// Nil where there is no socket.
    var address: ClientAddress?

    init(_ context: RPCContext) {
        caller = context.caller
        address = context.connection.clientAddress
    }

    init(caller: Caller = .nobody, address: ClientAddress? = nil) {
        self.caller = caller
        self.address = address
    }

    /// Throws when nobody, or the administrator as such, calls.
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
    /// When the user showed a credential, in seconds; nil when an administrator speaks as the user.
    var authTime: Int64? { claims["auth_time"]?.number.flatMap { Int64(exactly: $0) } }
    /// Seconds; nil when an administrator speaks as the user.
    var issuedAt: Int64? { claims["iat"]?.number.flatMap { Int64(exactly: $0) } }
}
