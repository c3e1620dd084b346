import HatoModel
import HatoStorage

/// Checks of accounts and changes that several methods share.
enum AccountChecks {
    /// A sign-in may be this far in the future: the first session after a change of the password begins a second later,
    /// and the clock may be set back a little.
    private static let clockLeewaySeconds: Int64 = 5

    /// The account of a caller that may still use it (spec auth §4, order of checks).
    static func ownAccount(_ user: Caller.User, in rows: some StoreReading) throws -> AccountRecord {
        guard let account = try AccountRows.find(user.uid, in: rows) else { throw AuthError.userNotFound }
        if let issuedAt = user.issuedAt, issuedAt < account.validSince { throw AuthError.sessionOver }
        guard !account.disabled else { throw AuthError.userDisabled }
        return account
    }

    /// Throws when the user signed in too long ago for a change of credentials.
    ///
    /// - Parameter now: milliseconds since 1970.
    static func requireRecentSignIn(
        _ user: Caller.User, _ account: AccountRecord, _ service: AuthService, now: Int64
    ) throws(AuthError) {
        let ageMax = service.configuration.credentialAgeSecondsMax
        // An account without a credential cannot sign in again. One whose credential no setting allows for now is not
        // exempt: the thief of a token could take it for ever.
        guard ageMax > 0, account.hasCredential(byMail: service.mail != nil) else { return }
        guard let authTime = user.authTime else {
            // Every token of this service has it.
            guard !user.hasToken else { throw .credentialTooOld }
            return
        }
        guard (-clockLeewaySeconds...ageMax).contains(now / 1000 - authTime) else { throw .credentialTooOld }
    }

    /// The attributes to delete, the password for the provider `password` among them.
    static func attributes(
        _ attributes: [Auth.AccountAttribute]?, ofProviders providers: [String]?
    ) -> [Auth.AccountAttribute]? {
        providers?.contains("password") == true ? (attributes ?? []) + [.password] : attributes
    }

    /// The attributes to delete; throws for one that is also given.
    static func deletions(
        _ attributes: [Auth.AccountAttribute]?, given: [Auth.AccountAttribute: String?]
    ) throws -> Set<Auth.AccountAttribute> {
        let deletions = Set(attributes ?? [])
        for attribute in deletions {
            if case .some(.some) = given[attribute] {
                throw AuthError.invalidFields([
                    FieldProblem(
                        "deleteAttributes", "INVALID_REQ_TYPE", "\(attribute.rawValue) is to be set and deleted at once"
                    )
                ])
            }
        }
        return deletions
    }

    /// Throws unless a user may give its account the names that `account` has. That an address is taken comes first
    /// where it may be shown (spec auth §3, order of checks).
    static func checkOwnNames(
        of account: AccountRecord, replacing before: AccountRecord, _ service: AuthService, in rows: some StoreReading
    ) throws {
        let hides = service.configuration.hidesWhoExists
        if !hides { try AccountRows.checkNames(of: account, replacing: before, in: rows) }
        try checkOwnAddress(of: account, replacing: before, service, in: rows)
        if hides { try AccountRows.checkNames(of: account, replacing: before, in: rows) }
    }

    /// Throws where a code must prove the address that a user gives its account, whether it is taken or not.
    static func checkOwnAddress(
        of account: AccountRecord, replacing before: AccountRecord, _ service: AuthService, in rows: some StoreReading
    ) throws {
        // A taken address says so here; a code to it does not.
        if service.configuration.signUpAlwaysAccepts, let email = account.email, email != before.email {
            throw AuthError.emailNeedsCode
        }
        try FormerAddresses(service).requireProof(of: account, replacing: before, in: rows)
    }

    /// The name that a user must give with a password, which signs in with one. Administrators may set a password
    /// before there is a name.
    static func missingName(
        _ form: AccountForm, _ before: AccountRecord, _ deletions: Set<Auth.AccountAttribute>
    ) -> [FieldProblem] {
        guard form.password != nil, !hasName(form, before, deletions) else { return [] }
        return [FieldProblem("email", "MISSING_EMAIL", "An e-mail address or a username is missing")]
    }

    /// The last name of an account with a password is deleted together with the password, which is never deleted
    /// silently.
    static func lostName(
        _ form: AccountForm, _ before: AccountRecord, _ deletions: Set<Auth.AccountAttribute>
    ) -> [FieldProblem] {
        let keepsPassword = form.password != nil || (before.passwordHash != nil && !deletions.contains(.password))
        guard keepsPassword, !before.signInNames.isEmpty, !hasName(form, before, deletions) else { return [] }
        return [
            FieldProblem(
                "deleteAttributes", "MISSING_EMAIL",
                "The password needs an e-mail address or a username: "
                    + "delete the password too, or give the account another name")
        ]
    }

    private static func hasName(
        _ form: AccountForm, _ before: AccountRecord, _ deletions: Set<Auth.AccountAttribute>
    ) -> Bool {
        form.email != nil || form.username != nil || (before.email != nil && !deletions.contains(.email))
            || (before.username != nil && !deletions.contains(.username))
    }

    /// Throws when there is a problem.
    static func refuse(_ problems: [FieldProblem]) throws(AuthError) {
        if !problems.isEmpty { throw .invalidFields(problems) }
    }
}
