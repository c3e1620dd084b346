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
        case .emailExists:
            .alreadyExists(reason: "EMAIL_EXISTS", "Another account has this e-mail address", at: "email")
        case .usernameExists:
            .alreadyExists(reason: "USERNAME_EXISTS", "Another account has this username", at: "username")
        case .uidExists: .alreadyExists(reason: "DUPLICATE_LOCAL_ID", "Another account has this uid", at: "uid")
        case .hasCredentials:
            .alreadyExists(
                reason: "PROVIDER_ALREADY_LINKED",
                "The account of idToken has credentials already; change them with auth.account.update", at: "idToken")
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
