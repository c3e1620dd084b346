import HatoModel

extension AuthError: RPCErrorConvertible {
    var rpcError: RPCError {
        switch self {
        case .invalidFields(let problems): RPCError.invalidFields(problems)
        case .invalidCode, .expiredCode, .codeOfAnotherType, .codeOfAnotherAddress, .newEmailExists, .emailNeedsCode,
            .missingNewPassword, .superfluousNewPassword, .insufficientPermission, .tooManyResets:
            codeError
        case .mailNotConfigured, .mailboxNotConfigured, .mailNotFound, .mailQueueFull: mailError
        case .token(let problem): problem.rpcError
        case .unknownProvider, .invalidProviderToken, .usedProviderToken, .providerUnavailable, .identityHasAccount,
            .providerHasIdentity, .lastSignInMethod, .discoveryFailed, .tooManyProviders, .providerNotFound,
            .providerHasIdentities, .accountHasIdentity, .linkedIdentityHasAccount:
            providerError
        case .emailExists:
            .alreadyExists(reason: "EMAIL_EXISTS", "Another account has this e-mail address", at: "email")
        case .usernameExists:
            .alreadyExists(reason: "USERNAME_EXISTS", "Another account has this username", at: "username")
        case .phoneNumberExists:
            .alreadyExists(reason: "PHONE_NUMBER_EXISTS", "Another account has this phone number", at: "phoneNumber")
        case .uidExists: .alreadyExists(reason: "DUPLICATE_LOCAL_ID", "Another account has this uid", at: "uid")
        case .hasCredentials:
            .alreadyExists(
                reason: "PROVIDER_ALREADY_LINKED",
                "The account of idToken has a password already; change it with auth.account.update", at: "idToken")
        case .invalidCredentials:
            .unauthenticated(reason: "INVALID_LOGIN_CREDENTIALS", "There is no account with this name and password")
        case .emailNotFound: .unauthenticated(reason: "EMAIL_NOT_FOUND", "There is no account with this name")
        case .invalidPassword: .unauthenticated(reason: "INVALID_PASSWORD", "The password is wrong")
        case .userDisabled: .unauthenticated(reason: "USER_DISABLED", "The account is disabled")
        case .userNotFound: .notFound(reason: "USER_NOT_FOUND", "There is no such account")
        case .operationNotAllowed:
            .failedPrecondition(
                reason: "OPERATION_NOT_ALLOWED", "Signing up with a password is turned off (auth.settings)")
        case .administratorsOnly:
            RPCError(
                .permissionDenied, reason: "ADMIN_ONLY_OPERATION", "Administrators make these accounts (auth.settings)")
        case .passwordSignInDisabled:
            .failedPrecondition(
                reason: "PASSWORD_LOGIN_DISABLED", "Signing in with a password is turned off (auth.settings)")
        case .keyNotFound:
            .notFound(reason: "key_not_found", "There is no signing key with this kid; auth.keys lists them")
        case .sessionOver: .unauthenticated(reason: "TOKEN_EXPIRED", "The session is over; sign in again")
        case .invalidRefreshToken:
            .unauthenticated(reason: "INVALID_REFRESH_TOKEN", "The refresh token is not valid; sign in again")
        case .tooManySessions:
            RPCError(
                .resourceExhausted, reason: "too_many_sessions",
                "The account has as many sessions as it may; end one with auth.sessions.end")
        case .credentialTooOld:
            .unauthenticated(
                reason: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN",
                "This change needs a recent sign-in; sign in again, then repeat it")
        case .tooManyAttempts(let milliseconds):
            .resourceExhausted(
                reason: "TOO_MANY_ATTEMPTS_TRY_LATER", "Too many attempts; try again later",
                retryAfterMs: Int(max(1, milliseconds)))
        case .notAUser:
            .permissionDenied("The administrator key has no account; use auth.users methods, or name a user with `as`")
        }
    }
}

extension AuthError {
    /// Of codes.
    private var codeError: RPCError {
        switch self {
        case .expiredCode:
            .invalidArgument("code", reason: "EXPIRED_OOB_CODE", "The code has expired; request another one")
        case .codeOfAnotherType:
            .invalidArgument(
                "code", reason: "INVALID_OOB_CODE",
                "The code is for another method: codes for signing in are for auth.signInWithCode, others for "
                    + "auth.code.apply")
        case .codeOfAnotherAddress:
            .invalidArgument("email", reason: "INVALID_EMAIL", "The code is for another e-mail address")
        case .newEmailExists:
            .alreadyExists(reason: "EMAIL_EXISTS", "Another account has the new e-mail address", at: "newEmail")
        case .emailNeedsCode:
            .failedPrecondition(
                reason: "EMAIL_CHANGE_NEEDS_VERIFICATION",
                "A code must prove the new e-mail address: request one of the type changeEmail (auth.code.request)")
        case .missingNewPassword:
            .invalidArgument(
                "newPassword", reason: "MISSING_PASSWORD", "The code sets a password; newPassword is missing")
        case .superfluousNewPassword:
            .invalidArgument(
                "newPassword", reason: "INVALID_REQ_TYPE", "The code sets no password; leave newPassword out")
        case .insufficientPermission:
            RPCError(
                .permissionDenied, reason: "INSUFFICIENT_PERMISSION",
                "Only administrators get codes in the response (returnCode)")
        case .tooManyResets(let milliseconds):
            .resourceExhausted(
                reason: "RESET_PASSWORD_EXCEED_LIMIT", "Too many codes were requested; try again later",
                retryAfterMs: Int(max(1, milliseconds)))
        default:
            .invalidArgument(
                "code", reason: "INVALID_OOB_CODE", "The code is wrong, or it was used; request another one")
        }
    }

    /// Of mails.
    private var mailError: RPCError {
        switch self {
        case .mailboxNotConfigured:
            .failedPrecondition(
                reason: "mailbox_not_configured", "Mails do not go into a folder here; see the setting mailbox")
        case .mailNotFound:
            .notFound(reason: "mail_not_found", "There is no such mail in the queue; auth.mail.list lists them")
        case .mailQueueFull:
            .resourceExhausted(
                reason: "mail_queue_full", "Too many mails wait for the mail server; try again later",
                retryAfterMs: 60_000)
        default:
            .failedPrecondition(
                reason: "mail_not_configured", "This service sends no mail; see the settings mail-url and mailbox")
        }
    }
}

extension AuthError {
    /// Of providers.
    private var providerError: RPCError {
        switch self {
        case .unknownProvider:
            .failedPrecondition(
                reason: "OPERATION_NOT_ALLOWED",
                "This provider is not set; auth.settings.get lists those that are (providers)")
        case .invalidProviderToken(let error): error.rpcError
        case .usedProviderToken:
            .unauthenticated(
                reason: "MISSING_OR_INVALID_NONCE",
                "The provider's ID token has signed in already; let the user sign in at the provider again",
                at: "idToken")
        case .providerUnavailable(let milliseconds):
            .unavailable(
                reason: "provider_unavailable",
                "The keys of the provider cannot be fetched now; try again in \(max(1, milliseconds / 1000)) seconds")
        case .identityHasAccount:
            .alreadyExists(
                reason: "FEDERATED_USER_ID_ALREADY_LINKED", "This identity of the provider has an account",
                at: "idToken")
        case .providerHasIdentity:
            .alreadyExists(
                reason: "PROVIDER_ALREADY_LINKED", "The account of link has another identity of this provider",
                at: "link")
        case .linkedIdentityHasAccount:
            .alreadyExists(
                reason: "FEDERATED_USER_ID_ALREADY_LINKED", "Another account has this identity of the provider",
                at: "linkProviderUserInfo")
        case .accountHasIdentity:
            .alreadyExists(
                reason: "PROVIDER_ALREADY_LINKED", "The account has another identity of this provider; unlink it first",
                at: "linkProviderUserInfo")
        case .lastSignInMethod:
            .failedPrecondition(
                reason: "LAST_SIGN_IN_METHOD",
                "The account would have no way to sign in any more; give it another one first that auth.settings "
                    + "allow: a password, a provider, or a confirmed e-mail address where codes are mailed")
        case .discoveryFailed(let why):
            .failedPrecondition(
                reason: "discovery_failed", "The keys of the issuer cannot be fetched: \(why). Or give them as jwks")
        case .providerHasIdentities:
            .failedPrecondition(
                reason: "provider_has_identities",
                "Accounts have identities of another issuer under this id, whose users are others: use another id, "
                    + "unlink them, or say that the users are the same (keepsIdentities: true)")
        case .tooManyProviders(let countMax):
            RPCError(
                .resourceExhausted, reason: "too_many_providers",
                "There are \(countMax) providers, as many as the setting providers-max allows; remove one")
        default:
            .notFound(
                reason: "CONFIGURATION_NOT_FOUND", "There is no such provider; auth.providers.list lists them")
        }
    }
}

extension ProviderTokenError {
    /// The wire error; the token's own text is never in it.
    var rpcError: RPCError {
        switch self {
        case .missingNonce:
            .unauthenticated(
                reason: "MISSING_OR_INVALID_NONCE", "The token has no nonce; give the provider one, and the same here",
                at: "nonce")
        case .nonceNotGiven:
            .unauthenticated(
                reason: "MISSING_OR_INVALID_NONCE", "The token has a nonce; give here what the app gave the provider",
                at: "nonce")
        case .wrongNonce:
            .unauthenticated(
                reason: "MISSING_OR_INVALID_NONCE", "The nonce is not that of the token", at: "nonce")
        default:
            .unauthenticated(
                reason: "INVALID_IDP_RESPONSE", "The provider's ID token is refused: \(explanation)", at: "idToken")
        }
    }

    /// What is wrong, for people.
    var explanation: String {
        switch self {
        case .malformed: "it is not a signed JWT"
        case .unsupportedAlgorithm: "its algorithm is not that of its key (RS256, ES256 or EdDSA)"
        case .embeddedKey: "it has a key of its own in its header"
        case .unknownKey: "its key is not one of the provider's"
        case .badSignature: "its signature is wrong"
        case .wrongIssuer: "it is of another issuer"
        case .wrongAudience: "it is for another app; see clientIds of auth.providers.set"
        case .badClaim(let name): "its claim \(name) is missing or wrong"
        case .notYetValid: "it is not valid yet"
        case .expired: "it has expired"
        case .missingNonce, .nonceNotGiven, .wrongNonce: "its nonce is missing or wrong"
        }
    }
}

extension RPCError {
    /// The first problem as the invalid argument, and all of them in `data.problems`, so that a form can mark every
    /// field.
    fileprivate static func invalidFields(_ problems: [FieldProblem]) -> RPCError {
        guard let first = problems.first else { return .internalError }
        let all = problems.map { problem in
            JSONValue.object([
                "parameter": .string(problem.parameter), "reason": .string(problem.reason),
                "message": .string(problem.message),
            ])
        }
        return RPCError(
            .invalidArgument, reason: first.reason, first.message,
            data: ["parameter": .string(first.parameter), "problems": .array(all)])
    }

    fileprivate static func alreadyExists(reason: String, _ message: String, at parameter: String) -> RPCError {
        RPCError(.alreadyExists, reason: reason, message, data: ["parameter": .string(parameter)])
    }
}
