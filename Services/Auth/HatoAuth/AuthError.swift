/// Why auth refuses a request. `RPCError+AuthError.swift` has the wire errors.
enum AuthError: Error, Sendable, Hashable {
    /// Wrong fields of a form; never empty.
    case invalidFields([FieldProblem])
    case emailExists
    case usernameExists
    case phoneNumberExists
    case uidExists
    /// The account that an ID token names has credentials already.
    case hasCredentials
    /// Wrong e-mail or wrong password, without saying which.
    case invalidCredentials
    /// The two cases separately, where the configuration does not hide the difference.
    case emailNotFound
    case invalidPassword
    case userDisabled
    case userNotFound
    /// People do not sign up with a password.
    case operationNotAllowed
    /// People do not make these accounts by themselves.
    case administratorsOnly
    /// People do not sign in with a password.
    case passwordSignInDisabled
    /// There is no signing key with the given id.
    case keyNotFound
    /// The token of a session that was ended, or that was unused for too long.
    case sessionOver
    case invalidRefreshToken
    /// The account has as many sessions as it may, and none may end for one more.
    case tooManySessions
    case credentialTooOld
    case tooManyAttempts(retryAfterMilliseconds: Int64)
    case tooManyResets(retryAfterMilliseconds: Int64)
    /// A code that is none, is used up, or is not for this account any more.
    case invalidCode
    case expiredCode
    /// A code for another method.
    case codeOfAnotherType
    /// A code for another address than the given one.
    case codeOfAnotherAddress
    case newEmailExists
    /// A new e-mail address that a code must prove first.
    case emailNeedsCode
    case missingNewPassword
    case superfluousNewPassword
    /// What only administrators may ask for.
    case insufficientPermission
    case mailNotConfigured
    case mailboxNotConfigured
    case mailNotFound
    case mailQueueFull
    case token(TokenProblem)
    /// No provider with this id is set.
    case unknownProvider
    case invalidProviderToken(ProviderTokenError)
    /// A token of a provider that has signed in already.
    case usedProviderToken
    /// The keys of a provider cannot be fetched now.
    case providerUnavailable(retryAfterMilliseconds: Int64)
    /// The identity signs in to another account.
    case identityHasAccount
    /// The account has another identity of the provider.
    case providerHasIdentity
    /// An administrator links an identity to an account that has another one of the provider.
    case accountHasIdentity
    /// An administrator links an identity that signs in to another account.
    case linkedIdentityHasAccount
    /// Nothing is left to sign in with.
    case lastSignInMethod
    /// The keys of a provider that is to be set cannot be fetched; the text says why.
    case discoveryFailed(String)
    case tooManyProviders(Int)
    /// Accounts have identities of another issuer under the id of a provider.
    case providerHasIdentities
    case providerNotFound
    /// The administrator key has no account.
    case notAUser
}

/// Why a custom token, its signer or a session cookie is refused.
enum TokenProblem: Sendable, Hashable {
    case missingCustomToken
    /// The text says what is wrong with it.
    case invalidCustomToken(String)
    /// Nothing that this project trusts has signed it.
    case customTokenOfAnother
    /// A custom token without uid.
    case missingUID
    /// A claim of a custom token that is reserved.
    case forbiddenClaim(String)
    case tooManySigners
    case signerNotFound
    /// The text says what is wrong with it.
    case invalidCookie(String)
    case expiredCookie
    case revokedCookie
}

/// One field of a form and its problem.
struct FieldProblem: Error, Sendable, Hashable {
    var parameter: String
    /// Firebase's reason where there is one.
    var reason: String
    /// States a valid value.
    var message: String

    init(_ parameter: String, _ reason: String, _ message: String) {
        self.parameter = parameter
        self.reason = reason
        self.message = message
    }
}
