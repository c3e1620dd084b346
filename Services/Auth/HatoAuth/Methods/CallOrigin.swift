import HatoIdentity
import HatoModel
import HatoRPC

/// The caller of a method and its address.
struct CallOrigin: Sendable {
    var caller: Caller
    /// Nil for a call without a socket.
    var address: ClientAddress?
    /// The administrator or the service that calls, also in the name of a user; nil for users.
    private(set) var by: String?
    /// Whether its connection has closed.
    private let hasGone: @Sendable () -> Bool

    init(_ context: RPCContext) {
        caller = context.caller
        let connection = context.connection
        address = context.clientAddress
        // Also on a connection that an administrator authenticated as a user: it has no token.
        let isImpersonated =
            switch context.caller {
            case .user(let user): !user.hasToken
            case .variable: true
            case .nobody, .administrator, .service: false
            }
        if context.caller.isAdministrator || context.isByAdministrator || isImpersonated {
            by = context.service.map { "service:\($0)" } ?? "administrator"
        }
        hasGone = { connection.isClosed }
    }

    init(
        caller: Caller = .nobody, address: ClientAddress? = nil, hasGone: @escaping @Sendable () -> Bool = { false }
    ) {
        self.caller = caller
        self.address = address
        self.hasGone = hasGone
    }

    /// The client whose turn it is when passwords wait to be hashed: the user, or the address of a caller that is none.
    /// An anonymous user counts as none: a client makes any number of these accounts without a hash.
    var hashingClient: HashingClient {
        switch caller {
        case .user(let user) where !user.isAnonymous: HashingClient(name: "user:\(user.uid)", hasGone: hasGone)
        case .administrator, .service: .administrators
        case .user, .variable, .nobody: HashingClient(name: "address:\(address?.network ?? "")", hasGone: hasGone)
        }
    }

    /// The user; throws for a call without credential, and for an administrator as such.
    func user() throws -> Caller.User {
        switch caller {
        case .user(let user): return user
        case .administrator, .service: throw AuthError.notAUser
        case .variable, .nobody: throw RPCError.missingCredential
        }
    }
}

/// One of those that take turns at the hashing threads.
struct HashingClient: Sendable {
    var name: String
    /// Whether the outcome reaches no client any more.
    var hasGone: @Sendable () -> Bool = { false }

    static let administrators = HashingClient(name: "administrators")
}

extension Caller.User {
    /// Whether the user has shown a token; false for one that an administrator impersonates.
    var hasToken: Bool { kid != nil }

    /// The time when the user presented a credential, in seconds; nil when an administrator impersonates the user
    /// without naming a time.
    var authTime: Int64? { seconds("auth_time") }
    /// Seconds; nil when an administrator impersonates the user without naming a time.
    var issuedAt: Int64? { seconds("iat") }

    /// Whether the account had no credential when the token was issued.
    var isAnonymous: Bool { signInProvider == .anonymous }
    /// How the user signed in; nil when an administrator impersonates the user without naming it.
    var signInProvider: SignInProvider? {
        claims["firebase"]?["sign_in_provider"]?.string.flatMap { try? SignInProvider($0) }
    }

    /// Nil for what is no time: the claims of an impersonated user are what the administrator says.
    private func seconds(_ claim: String) -> Int64? { claims[claim].flatMap(TokenVerifier.seconds) }
}
