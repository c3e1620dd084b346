// The errors that the methods of auth may return besides those of every method.

extension [MethodError] {
    private static let takenNames = MethodError(.alreadyExists, "EMAIL_EXISTS", "USERNAME_EXISTS")
    private static let tooManyAttempts = MethodError(
        .resourceExhausted, "TOO_MANY_ATTEMPTS_TRY_LATER", data: ["retryAfterMs"])

    private static let emailNeedsCode = MethodError(.failedPrecondition, "EMAIL_CHANGE_NEEDS_VERIFICATION")

    /// Of methods for the caller's own account.
    fileprivate static let ownAccount = [
        MethodError(.unauthenticated, "TOKEN_EXPIRED", "USER_DISABLED"), MethodError(.notFound, "USER_NOT_FOUND"),
    ]

    /// Where accounts are for some people only (`auth.settings`).
    private static let closedSignUp = [
        MethodError(.permissionDenied, "ADMIN_ONLY_OPERATION"),
        MethodError(.failedPrecondition, "OPERATION_NOT_ALLOWED"),
        MethodError(.invalidArgument, "UNAUTHORIZED_DOMAIN", data: ["problems"]),
    ]

    fileprivate static let signUp =
        closedSignUp + [
            MethodError(
                .invalidArgument, "INVALID_EMAIL", "INVALID_USERNAME", "WEAK_PASSWORD", "INVALID_DISPLAY_NAME",
                "MISSING_EMAIL", "MISSING_PASSWORD", "INVALID_LABEL", data: ["problems"]),
            takenNames, emailNeedsCode, MethodError(.alreadyExists, "PROVIDER_ALREADY_LINKED"),
            MethodError(.unauthenticated, "INVALID_ID_TOKEN"), recentSignIn,
            MethodError(.invalidArgument, "INVALID_CONTINUE_URI", "INVALID_LOCALE", data: ["problems"]),
            MethodError(.failedPrecondition, "mail_not_configured"),
            MethodError(.resourceExhausted, "mail_queue_full", data: ["retryAfterMs"]),
        ] + ownAccount + [tooManyAttempts]

    fileprivate static let signIn = [
        MethodError(
            .unauthenticated, "INVALID_LOGIN_CREDENTIALS", "EMAIL_NOT_FOUND", "INVALID_PASSWORD", "USER_DISABLED"),
        MethodError(
            .invalidArgument, "INVALID_EMAIL", "INVALID_USERNAME", "MISSING_EMAIL", "MISSING_PASSWORD",
            "INVALID_LABEL"),
        MethodError(.failedPrecondition, "PASSWORD_LOGIN_DISABLED"), tooManyAttempts,
    ]

    fileprivate static let refresh = [
        MethodError(.unauthenticated, "INVALID_REFRESH_TOKEN", "TOKEN_EXPIRED", "USER_DISABLED"),
        MethodError(.notFound, "USER_NOT_FOUND"), MethodError(.invalidArgument, "MISSING_REFRESH_TOKEN"),
        tooManyAttempts,
    ]

    fileprivate static let fork =
        refresh + [
            MethodError(.invalidArgument, "INVALID_LABEL", data: ["problems"]),
            MethodError(.resourceExhausted, "too_many_sessions"),
        ]

    private static let recentSignIn = MethodError(.unauthenticated, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")

    fileprivate static let deleteAccount = ownAccount + [recentSignIn]

    fileprivate static let updateAccount =
        closedSignUp + [
            MethodError(
                .invalidArgument, "INVALID_EMAIL", "INVALID_USERNAME", "WEAK_PASSWORD", "INVALID_DISPLAY_NAME",
                "INVALID_PHOTO_URL", "MISSING_EMAIL", "MISSING_PASSWORD", "INVALID_REQ_TYPE", data: ["problems"]),
            takenNames, emailNeedsCode, MethodError(.failedPrecondition, "LAST_SIGN_IN_METHOD"),
            MethodError(.resourceExhausted, "mail_queue_full", data: ["retryAfterMs"]),
        ] + deleteAccount + [tooManyAttempts]

    private static let wrongCode = [
        MethodError(.invalidArgument, "MISSING_OOB_CODE", "INVALID_OOB_CODE", "EXPIRED_OOB_CODE"),
        MethodError(.invalidArgument, "MISSING_EMAIL", "INVALID_EMAIL", data: ["problems"]),
    ]

    fileprivate static let requestCode =
        [
            MethodError(.permissionDenied, "INSUFFICIENT_PERMISSION", "ADMIN_ONLY_OPERATION"),
            MethodError(
                .failedPrecondition, "OPERATION_NOT_ALLOWED", "PASSWORD_LOGIN_DISABLED", "mail_not_configured"),
            MethodError(
                .invalidArgument, "MISSING_REQ_TYPE", "INVALID_REQ_TYPE", "INVALID_CONTINUE_URI",
                "UNAUTHORIZED_DOMAIN", "INVALID_LOCALE", "MISSING_EMAIL", "MISSING_NEW_EMAIL", "INVALID_EMAIL",
                data: ["problems"]),
            MethodError(.unauthenticated, "EMAIL_NOT_FOUND"), MethodError(.alreadyExists, "EMAIL_EXISTS"),
            MethodError(
                .resourceExhausted, "RESET_PASSWORD_EXCEED_LIMIT", "mail_queue_full", data: ["retryAfterMs"]),
        ] + deleteAccount + [tooManyAttempts]

    fileprivate static let checkCode = wrongCode + [MethodError(.unauthenticated, "USER_DISABLED"), tooManyAttempts]

    fileprivate static let applyCode =
        [
            MethodError(.failedPrecondition, "PASSWORD_LOGIN_DISABLED", "OPERATION_NOT_ALLOWED"),
            MethodError(.permissionDenied, "ADMIN_ONLY_OPERATION"),
            MethodError(.invalidArgument, "UNAUTHORIZED_DOMAIN", data: ["problems"]),
        ] + checkCode + [
            MethodError(
                .invalidArgument, "MISSING_PASSWORD", "INVALID_REQ_TYPE", "WEAK_PASSWORD", data: ["problems"]),
            takenNames,
            MethodError(.resourceExhausted, "mail_queue_full", data: ["retryAfterMs"]),
        ]

    fileprivate static let signInWithCode =
        [
            MethodError(.failedPrecondition, "OPERATION_NOT_ALLOWED"),
            MethodError(.permissionDenied, "ADMIN_ONLY_OPERATION"),
            MethodError(.invalidArgument, "INVALID_LABEL", "UNAUTHORIZED_DOMAIN", data: ["problems"]),
            MethodError(.unauthenticated, "INVALID_ID_TOKEN", "EMAIL_NOT_FOUND"), recentSignIn,
            MethodError(.alreadyExists, "EMAIL_EXISTS", "PROVIDER_ALREADY_LINKED"),
        ] + wrongCode + ownAccount + [tooManyAttempts]

    fileprivate static let createCustomToken = [
        MethodError(.invalidArgument, "MISSING_IDENTIFIER"),
        MethodError(
            .invalidArgument, "INVALID_LOCAL_ID", "CLAIMS_TOO_LARGE", "INVALID_CLAIMS", "FORBIDDEN_CLAIM",
            data: ["problems"]),
    ]

    fileprivate static let signInWithCustomToken = [
        MethodError(.invalidArgument, "MISSING_CUSTOM_TOKEN", "INVALID_CUSTOM_TOKEN", "MISSING_IDENTIFIER"),
        MethodError(.invalidArgument, "FORBIDDEN_CLAIM", data: ["claim"]),
        MethodError(.invalidArgument, "INVALID_LABEL", data: ["problems"]),
        MethodError(.unauthenticated, "CREDENTIAL_MISMATCH", "USER_DISABLED"),
        tooManyAttempts,
    ]

    fileprivate static let createSessionCookie =
        [
            MethodError(.invalidArgument, "INVALID_DURATION", data: ["problems"]),
            MethodError(.unauthenticated, "MISSING_ID_TOKEN", "INVALID_ID_TOKEN"),
        ] + ownAccount

    fileprivate static let verifySessionCookie =
        [
            MethodError(
                .unauthenticated, "INVALID_SESSION_COOKIE", "SESSION_COOKIE_EXPIRED", "SESSION_COOKIE_REVOKED",
                "USER_DISABLED")
        ] + unknownUser

    fileprivate static let signInWithProvider =
        [
            MethodError(.failedPrecondition, "OPERATION_NOT_ALLOWED", "EMAIL_CHANGE_NEEDS_VERIFICATION"),
            MethodError(.permissionDenied, "ADMIN_ONLY_OPERATION"),
            MethodError(.invalidArgument, "INVALID_PROVIDER_ID"),
            MethodError(
                .invalidArgument, "INVALID_DISPLAY_NAME", "INVALID_LABEL", "INVALID_REQ_TYPE", "MISSING_EMAIL",
                "INVALID_EMAIL", "UNAUTHORIZED_DOMAIN", data: ["problems"]),
            MethodError(
                .unauthenticated, "INVALID_ID_TOKEN", "INVALID_IDP_RESPONSE", "MISSING_OR_INVALID_NONCE"), recentSignIn,
            MethodError(
                .alreadyExists, "EMAIL_EXISTS", "FEDERATED_USER_ID_ALREADY_LINKED", "PROVIDER_ALREADY_LINKED"),
            MethodError(.unavailable, "provider_unavailable"),
        ] + ownAccount + [tooManyAttempts]

    private static let managedAccount = [
        MethodError(
            .invalidArgument, "INVALID_EMAIL", "INVALID_USERNAME", "WEAK_PASSWORD", "INVALID_DISPLAY_NAME",
            "INVALID_PHOTO_URL", "INVALID_PHONE_NUMBER", "CLAIMS_TOO_LARGE", "INVALID_CLAIMS", "FORBIDDEN_CLAIM",
            data: ["problems"]), takenNames, MethodError(.alreadyExists, "PHONE_NUMBER_EXISTS"),
        tooManyAttempts,
    ]

    fileprivate static let createUser =
        managedAccount + [
            MethodError(.invalidArgument, "INVALID_LOCAL_ID", data: ["problems"]),
            MethodError(.alreadyExists, "DUPLICATE_LOCAL_ID"),
        ]

    fileprivate static let invite = [
        MethodError(.failedPrecondition, "mail_not_configured"),
        MethodError(
            .invalidArgument, "MISSING_EMAIL", "INVALID_EMAIL", "INVALID_LOCAL_ID", "INVALID_DISPLAY_NAME",
            "INVALID_CONTINUE_URI", "UNAUTHORIZED_DOMAIN", "INVALID_LOCALE", data: ["problems"]),
        MethodError(.alreadyExists, "EMAIL_EXISTS", "DUPLICATE_LOCAL_ID"),
        MethodError(.unauthenticated, "USER_DISABLED"),
        MethodError(.resourceExhausted, "mail_queue_full", data: ["retryAfterMs"]),
    ]

    fileprivate static let updateUser =
        managedAccount + [
            MethodError(
                .invalidArgument, "MISSING_EMAIL", "INVALID_REQ_TYPE", "INVALID_PROVIDER_ID", data: ["problems"]),
            MethodError(.alreadyExists, "FEDERATED_USER_ID_ALREADY_LINKED", "PROVIDER_ALREADY_LINKED"),
        ] + unknownUser

    fileprivate static let signInMethods = [
        MethodError(.invalidArgument, "MISSING_EMAIL", "INVALID_EMAIL", data: ["problems"]), tooManyAttempts,
    ]

    fileprivate static let unknownUser = [MethodError(.notFound, "USER_NOT_FOUND")]
}

extension Auth.SignUp { public static let errors: [MethodError] = .signUp }
extension Auth.SignIn { public static let errors: [MethodError] = .signIn }
extension Auth.Refresh { public static let errors: [MethodError] = .refresh }
extension Auth.SignOut { public static let errors = [MethodError(.invalidArgument, "MISSING_REFRESH_TOKEN")] }
extension Auth.Sessions.List {
    public static let errors: [MethodError] = .joined(
        [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION", data: ["problems"])], .ownAccount)
}
extension Auth.Sessions.End { public static let errors: [MethodError] = .ownAccount }
extension Auth.Sessions.Fork { public static let errors: [MethodError] = .fork }
extension Auth.Account.Get { public static let errors: [MethodError] = .ownAccount }
extension Auth.Account.Update { public static let errors: [MethodError] = .updateAccount }
extension Auth.Account.Delete { public static let errors: [MethodError] = .deleteAccount }
extension Auth.Users.Create { public static let errors: [MethodError] = .createUser }
extension Auth.Users.Update { public static let errors: [MethodError] = .updateUser }
extension Auth.Users.Get {
    public static let errors: [MethodError] = .joined(
        [
            MethodError(
                .invalidArgument, "MISSING_IDENTIFIER", "INVALID_EMAIL", "INVALID_USERNAME", "INVALID_PHONE_NUMBER")
        ], .unknownUser)
}
extension Auth.Users.List { public static let errors = [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION")] }
extension Auth.Users.Export { public static let errors = [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION")] }
extension Auth.Users.Import {
    public static let errors = [
        MethodError(
            .invalidArgument, "MISSING_USER_ACCOUNT", "MAXIMUM_USER_COUNT_EXCEEDED", "DUPLICATE_LOCAL_ID",
            "DUPLICATE_EMAIL", "DUPLICATE_USERNAME", "DUPLICATE_PHONE_NUMBER", "DUPLICATE_RAW_ID",
            "MISSING_HASH_ALGORITHM",
            "INVALID_HASH_PARAMETERS",
            data: ["problems"])
    ]
}
extension Auth.Users.Delete { public static let errors: [MethodError] = .unknownUser }
extension Auth.Users.Revoke { public static let errors: [MethodError] = .unknownUser }
extension Auth.Users.Invite { public static let errors: [MethodError] = .invite }
extension Auth.Code.Request { public static let errors: [MethodError] = .requestCode }
extension Auth.Code.Check { public static let errors: [MethodError] = .checkCode }
extension Auth.Code.Apply { public static let errors: [MethodError] = .applyCode }
extension Auth.SignInWithCode { public static let errors: [MethodError] = .signInWithCode }
extension Auth.CustomToken.Create { public static let errors: [MethodError] = .createCustomToken }
extension Auth.CustomToken.Signers.Set {
    public static let errors = [
        MethodError(.invalidArgument, "INVALID_EMAIL", "INVALID_PUBLIC_KEY", data: ["problems"]),
        MethodError(.resourceExhausted, "too_many_signers"),
    ]
}
extension Auth.CustomToken.Signers.List {
    public static let errors = [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION", data: ["problems"])]
}
extension Auth.CustomToken.Signers.Remove { public static let errors = [MethodError(.notFound, "signer_not_found")] }
extension Auth.SignInWithCustomToken { public static let errors: [MethodError] = .signInWithCustomToken }
extension Auth.SessionCookie.Create { public static let errors: [MethodError] = .createSessionCookie }
extension Auth.SessionCookie.Verify { public static let errors: [MethodError] = .verifySessionCookie }
extension Auth.Audit.List {
    public static let errors = [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION", data: ["problems"])]
}
extension Auth.SignInWithProvider { public static let errors: [MethodError] = .signInWithProvider }
extension Auth.SignInMethods { public static let errors: [MethodError] = .signInMethods }
extension Auth.Providers.Set {
    public static let errors = [
        MethodError(
            .invalidArgument, "INVALID_PROVIDER_ID", "INVALID_ISSUER", "INVALID_CLIENT_ID", "INVALID_KEYS",
            data: ["problems"]),
        MethodError(.failedPrecondition, "discovery_failed", "provider_has_identities"),
        MethodError(.resourceExhausted, "too_many_providers"),
    ]
}
extension Auth.Providers.Remove { public static let errors = [MethodError(.notFound, "CONFIGURATION_NOT_FOUND")] }
extension Auth.Mail.List { public static let errors = [MethodError(.invalidArgument, "INVALID_PAGE_SELECTION")] }
extension Auth.Mail.Replay { public static let errors = [MethodError(.notFound, "mail_not_found")] }
extension Auth.Mail.Drop { public static let errors = [MethodError(.notFound, "mail_not_found")] }
extension Auth.Mailbox.List {
    public static let errors = [
        MethodError(.failedPrecondition, "mailbox_not_configured"),
        MethodError(.invalidArgument, "INVALID_PAGE_SELECTION", "INVALID_EMAIL", data: ["problems"]),
    ]
}
extension Auth.Follow { public static let errors: [MethodError] = .follow }
extension Auth.Unfollow { public static let errors: [MethodError] = .unfollow }
extension Auth.Settings.Set {
    public static let errors = [
        MethodError(.invalidArgument, "INVALID_SETTING", data: ["problems"]),
        MethodError(.failedPrecondition, "mail_not_configured"),
    ]
}
extension Auth.Keys.Revoke { public static let errors = [MethodError(.notFound, "key_not_found")] }
extension Auth.Backup { public static let errors: [MethodError] = .backup }
