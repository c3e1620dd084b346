import HatoModel
import HatoStorage

/// For whom a code is requested, and who gets its mail.
struct CodeSubject: Sendable {
    /// The account, as the request names it.
    enum Account: Sendable, Hashable {
        /// The caller's own.
        case own(Caller.User)
        case email(String)
    }

    var type: Auth.CodeType
    var account: Account
    /// Normalised; for `changeEmail`.
    var newEmail: String?

    /// The address that the request names; nil: it names none.
    var address: String? {
        switch account {
        case .own: newEmail
        case .email(let email): newEmail ?? email
        }
    }

    /// The session that must still be there when the code is used: a thief of a session must not change the address
    /// after the owner has ended it. Nil: none.
    var session: String? {
        guard type == .changeEmail, case .own(let user) = account else { return nil }
        return user.session
    }

    /// The receiver of the code.
    struct Resolved: Sendable {
        var to: String
        /// Nil: none yet.
        var account: AccountRecord?
    }

    /// What a request comes to.
    enum Resolution {
        case send(Resolved)
        /// No mail is sent, and the caller must not learn it.
        case nobody(AuthError)
    }

    /// Reads only. Throws `AuthError` for what the caller may know.
    ///
    /// - Parameters:
    ///   - makesAccounts: whether the address may become that of an account without one.
    ///   - now: milliseconds since 1970.
    func resolve(
        _ service: AuthService, makesAccounts: Bool, now: Int64, in rows: some StoreReading
    ) throws -> Resolution {
        switch account {
        case .own(let user):
            let own = try AccountChecks.ownAccount(user, in: rows)
            if newEmail != nil {
                try AccountChecks.requireRecentSignIn(user, own, service, now: now)
                _ = try service.ownSession(of: user, among: try SessionRows.ids(of: own.uid, in: rows))
                if own.isAnonymous, !makesAccounts { throw AuthError.administratorsOnly }
            }
            guard let to = newEmail ?? own.email else {
                throw AuthError.invalidFields([
                    FieldProblem("email", "MISSING_EMAIL", "The account has no e-mail address")
                ])
            }
            // An earlier version has stored some.
            guard EmailAddress.isMailable(to) else {
                throw AuthError.invalidFields([
                    FieldProblem(
                        "email", "INVALID_EMAIL", "No mail can be sent to the address of the account; change it first")
                ])
            }
            return try free(to, of: own, in: rows)
        case .email(let email):
            guard let found = try AccountRows.find(.email(email), in: rows) else {
                if type == .signIn, makesAccounts { return .send(Resolved(to: email)) }
                return .nobody(type == .verifyEmail || type == .changeEmail ? .userNotFound : .emailNotFound)
            }
            guard !found.disabled else { return .nobody(.userDisabled) }
            return try free(newEmail ?? email, of: found, in: rows)
        }
    }

    /// A new address must not be that of another account.
    private func free(_ to: String, of account: AccountRecord, in rows: some StoreReading) throws -> Resolution {
        if newEmail != nil, try rows.row(AuthKey.email(to)) != nil { return .nobody(.newEmailExists) }
        return .send(Resolved(to: to, account: account))
    }
}
