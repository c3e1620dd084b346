import HatoIdentity
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

    /// The client whose turn it is when passwords wait to be hashed: the user, or the address of a caller that is none.
    var hashingClient: HashingClient {
        switch caller {
        case .user(let user): HashingClient(name: "user:\(user.uid)")
        case .administrator: .administrators
        case .nobody: HashingClient(name: "address:\(address?.network ?? "")")
        }
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

/// One of those that take turns at the hashing threads.
struct HashingClient: Sendable, Hashable {
    var name: String

    static let administrators = HashingClient(name: "administrators")
}

extension Caller.User {
    /// The time when the user presented a credential, in seconds; nil when an administrator impersonates the user
    /// without naming a time.
    var authTime: Int64? { seconds("auth_time") }
    /// Seconds; nil when an administrator impersonates the user without naming a time.
    var issuedAt: Int64? { seconds("iat") }

    /// Nil for what is no time: the claims of an impersonated user are what the administrator says.
    private func seconds(_ claim: String) -> Int64? { claims[claim].flatMap(TokenVerifier.seconds) }
}
