import HatoModel

/// Turns errors of the auth service into those of Firebase (spec auth §1, §3-§5; protocol §3).
struct AuthErrors: Sendable {
    let operation: AuthOperation
    /// Whether the call had an administrator's credential of the request.
    let isAdministrator: Bool

    /// The reasons of which the service's text is shown, too: it has no value of the request.
    private static let explained: Set<String> = [
        "INVALID_CUSTOM_TOKEN", "INVALID_IDP_RESPONSE", "INVALID_SETTING", "MISSING_OR_INVALID_NONCE",
        "TOO_MANY_ATTEMPTS_TRY_LATER", "WEAK_PASSWORD",
    ]

    /// Firebase checks in this order; a form's mistakes come all at once.
    private static let order = [
        "MISSING_LOCAL_ID", "INVALID_LOCAL_ID", "MISSING_EMAIL", "MISSING_PASSWORD", "INVALID_PHONE_NUMBER",
        "PHONE_NUMBER_EXISTS", "CLAIMS_TOO_LARGE", "INVALID_CLAIMS", "FORBIDDEN_CLAIM", "INVALID_EMAIL",
        "EMAIL_EXISTS", "WEAK_PASSWORD",
    ]

    /// The only errors of the token endpoint: SDKs sign out at every other.
    private static let ofTokens: Set<String> = [
        "INVALID_REFRESH_TOKEN", "MISSING_REFRESH_TOKEN", "TOKEN_EXPIRED", "USER_DISABLED", "USER_NOT_FOUND",
    ]

    func fault(_ error: RPCError) -> AuthFault {
        switch error.code {
        case .unavailable, .internalError, .parseError, .invalidRequest: return outage(error)
        case .methodNotFound: return operation == .token ? outage(error) : .unimplemented(operation.rawValue)
        case .resourceExhausted: return exhausted(error)
        default: break
        }
        let reason = reason(error)
        if operation == .token { return Self.ofTokens.contains(reason) ? AuthFault(reason) : ofToken(error) }
        switch reason {
        case "missing_credential": return isAdministrator ? .wrongAdministrator : AuthFault("INVALID_ID_TOKEN")
        case "credential_too_long": return isAdministrator ? .wrongAdministrator : AuthFault("INVALID_ID_TOKEN")
        case "permission_denied": return isAdministrator ? .notAllowed : AuthFault("INVALID_ID_TOKEN")
        case "INVALID_ID_TOKEN", "TOKEN_EXPIRED":
            // Of an administrator the credential is meant, but for the ID token that becomes a cookie.
            return isAdministrator && operation != .createSessionCookie ? .wrongAdministrator : AuthFault(reason)
        case _ where Self.isCode(reason): return business(reason, error)
        case "mail_not_configured": return AuthFault("OPERATION_NOT_ALLOWED", "This service sends no mail.")
        default: return unnamed(error)
        }
    }

    /// The first in Firebase's order of checks.
    private func reason(_ error: RPCError) -> String {
        let reason = error.reason ?? ""
        guard let problems = error.data["problems"]?.array, problems.count > 1 else { return reason }
        let reasons = problems.compactMap { $0["reason"]?.string }
        return Self.order.first(where: reasons.contains) ?? reason
    }

    /// The text of the problem with this reason.
    private func text(_ reason: String, _ error: RPCError) -> String {
        let problem = error.data["problems"]?.array?.first { $0["reason"]?.string == reason }
        return problem?["message"]?.string ?? error.message
    }

    private func business(_ reason: String, _ error: RPCError) -> AuthFault {
        switch (operation, reason) {
        case (.createAuthUri, "INVALID_EMAIL"): AuthFault("INVALID_IDENTIFIER")
        case (.createAuthUri, "MISSING_EMAIL"): AuthFault("MISSING_IDENTIFIER")
        // The code is for another operation.
        case (.resetPassword, "MISSING_PASSWORD"), (.resetPassword, "INVALID_REQ_TYPE"),
            (.resetPassword, "MISSING_EMAIL"):
            AuthFault("INVALID_OOB_CODE")
        case (.signInWithEmailLink, "INVALID_EMAIL"):
            AuthFault("INVALID_EMAIL", "The email provided does not match the sign-in email address.")
        case (.signInWithIdp, "OPERATION_NOT_ALLOWED"):
            AuthFault("OPERATION_NOT_ALLOWED", "The identity provider configuration is not found.")
        case (_, "INVALID_SETTING"): AuthFault("INVALID_CONFIG", text(reason, error))
        case (_, "INVALID_PHONE_NUMBER"): AuthFault("INVALID_PHONE_NUMBER", "Invalid format.")
        case (_, "LAST_SIGN_IN_METHOD"):
            AuthFault("OPERATION_NOT_ALLOWED", "The account would have no way to sign in.")
        case (_, "FORBIDDEN_CLAIM"):
            AuthFault("FORBIDDEN_CLAIM", error.data["claim"]?.string)
        case _ where Self.explained.contains(reason): AuthFault(reason, text(reason, error))
        default: AuthFault(reason)
        }
    }

    private func exhausted(_ error: RPCError) -> AuthFault {
        if error.reason == "too_big", operation != .token {
            return .invalidArgument("The request or its result is too large.")
        }
        guard let reason = error.reason, reason.hasSuffix("TRY_LATER") || reason.hasSuffix("EXCEED_LIMIT"),
            operation != .lookup, operation != .token
        else { return outage(error) }
        var fault = business(reason, error)
        fault.retryAfterSeconds = Self.seconds(error)
        return fault
    }

    private func outage(_ error: RPCError) -> AuthFault { .outage(retryAfterSeconds: Self.seconds(error)) }

    /// A text that is no refresh token in form; anything else is ours.
    private func ofToken(_ error: RPCError) -> AuthFault {
        error.code == .invalidParams || error.code == .invalidArgument || error.code == .unauthenticated
            ? AuthFault("INVALID_REFRESH_TOKEN") : outage(error)
    }

    private func unnamed(_ error: RPCError) -> AuthFault {
        switch error.code {
        case .invalidParams, .invalidArgument: .invalidArgument("Request contains an invalid argument.")
        case .permissionDenied: isAdministrator ? .notAllowed : AuthFault("INSUFFICIENT_PERMISSION")
        default: outage(error)
        }
    }

    private static func seconds(_ error: RPCError) -> Int? {
        error.retryAfter.map { Int($0.components.seconds) + ($0.components.attoseconds > 0 ? 1 : 0) }
    }

    /// Whether the reason is a code as Firebase's are.
    private static func isCode(_ reason: String) -> Bool {
        (1...64).contains(reason.utf8.count)
            && reason.utf8.allSatisfy { byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "_")
            }
    }
}
