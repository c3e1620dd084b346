import HatoModel

extension TokenProblem {
    var rpcError: RPCError {
        switch self {
        case .missingCustomToken:
            .invalidArgument("token", reason: "MISSING_CUSTOM_TOKEN", "token is missing")
        case .invalidCustomToken(let explanation):
            .invalidArgument(
                "token", reason: "INVALID_CUSTOM_TOKEN", "The custom token is not valid (\(explanation))")
        case .customTokenOfAnother:
            .unauthenticated(
                reason: "CREDENTIAL_MISMATCH",
                "The custom token is of another project, or of a service account that is not registered")
        case .missingUID: .invalidArgument("token", reason: "MISSING_IDENTIFIER", "The custom token has no uid")
        case .forbiddenClaim(let name):
            RPCError(
                .invalidArgument, reason: "FORBIDDEN_CLAIM",
                "The custom token has the claim \(name), which is reserved",
                data: ["parameter": "token", "claim": .string(name)])
        case .tooManySigners:
            RPCError(
                .resourceExhausted, reason: "too_many_signers",
                "As many service accounts are registered as may be; remove one with auth.customToken.signers.remove")
        case .signerNotFound:
            .notFound(
                reason: "signer_not_found",
                "This service account is not registered; auth.customToken.signers.list lists them")
        case .invalidCookie(let explanation):
            .unauthenticated(
                reason: "INVALID_SESSION_COOKIE", "The text is no valid session cookie (\(explanation))")
        case .expiredCookie: .unauthenticated(reason: "SESSION_COOKIE_EXPIRED", "The session cookie has expired")
        case .revokedCookie:
            .unauthenticated(
                reason: "SESSION_COOKIE_REVOKED", "The session of this cookie has ended; sign in again")
        }
    }
}
