/// Why auth says no. `RPCError+AuthError.swift` has the words for the wire.
enum AuthError: Error, Sendable, Hashable {
    /// Fields of a form that are wrong; never empty.
    case invalidFields([FieldProblem])
    case emailExists
    case usernameExists
    case uidExists
    /// The account that an ID token names has credentials already.
    case hasCredentials
    /// Wrong e-mail or wrong password: which one is nobody's business.
    case invalidCredentials
    /// The two, told apart, where the configuration does not hide it.
    case emailNotFound
    case invalidPassword
    case userDisabled
    case userNotFound
    /// A token of a session that was ended, or that was not used for too long.
    case sessionOver
    case invalidRefreshToken
    case credentialTooOld
    case tooManyAttempts(retryAfterMilliseconds: Int64)
    /// The administrator key has no account.
    case notAUser
}

/// One field of a form and what is wrong with it.
struct FieldProblem: Error, Sendable, Hashable {
    var parameter: String
    /// Firebase's word where there is one.
    var reason: String
    /// Says what would be right.
    var message: String

    init(_ parameter: String, _ reason: String, _ message: String) {
        self.parameter = parameter
        self.reason = reason
        self.message = message
    }
}
