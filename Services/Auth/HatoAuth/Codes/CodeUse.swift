import HatoModel
import HatoStorage

/// Codes as they are used.
struct CodeUse: Sendable {
    private let service: AuthService
    private let former: FormerAddresses

    init(_ service: AuthService) {
        self.service = service
        former = FormerAddresses(service)
    }

    /// The account of a code; nil for a code for signing in or up where there is none yet. Throws
    /// `AuthError.invalidCode` when it is not the account any more for which the code was made, when the session that
    /// requested it is over, and when the address of a sign-up has an account.
    func account(of code: CodeRecord, in rows: some StoreReading) throws -> AccountRecord? {
        if code.type == .signUp, try rows.row(AuthKey.email(code.to)) != nil { throw AuthError.invalidCode }
        guard let uid = code.uid else { return nil }
        guard let account = try AccountRows.find(uid, in: rows), code.concerns(account) else {
            throw AuthError.invalidCode
        }
        if let session = code.session {
            let sessions = try SessionRows.ids(of: uid, in: rows)
            guard sessions.contains(where: { SessionName.text($0, key: service.refreshKey) == session }) else {
                throw AuthError.invalidCode
            }
        }
        guard !account.disabled else { throw AuthError.userDisabled }
        return account
    }

    /// Does what a code is for, and deletes it. It reads first and writes after.
    ///
    /// - Parameters:
    ///   - passwordHash: the new password.
    ///   - now: milliseconds since 1970.
    func use(
        _ code: CodeRecord, passwordHash: PasswordHash?, now: Int64, in rows: AuthTransaction
    ) throws -> Auth.Code.Found {
        if code.type == .signUp { return try makeAccount(by: code, passwordHash, now: now, in: rows) }
        guard let before = try self.account(of: code, in: rows) else { throw AuthError.invalidCode }
        let change = code.change(passwordHash)
        var account = change.applied(to: before, now: now)
        // Where only providers sign in, their identities stay: the owner would have none left.
        if code.type == .recoverEmail, !WaysIn(service).isLeft(account) { account.identities = before.identities }
        let endsSessions = change.endsSessions(before, account)
        // The thief that changed the address has a session, whatever else is changed back.
        if code.type == .recoverEmail, !endsSessions { account.endTokens(at: now) }
        let holder = try unprovedHolder(of: code, in: rows)
        if holder == nil {
            do { try AccountRows.checkNames(of: account, replacing: before, in: rows) } catch AuthError.emailExists {
                throw AuthError.newEmailExists
            }
        }
        let ended = endsSessions || code.type == .recoverEmail ? try SessionRows.ids(of: account.uid, in: rows) : []
        let endedOfHolder = try holder.map { try SessionRows.ids(of: $0.uid, in: rows) } ?? []
        let recoveries = try former.ended(by: code, of: before, in: rows)
        if code.type == .changeEmail {
            try former.issueCode(of: before, to: account, locale: code.locale, in: rows)
        }
        if let holder {
            AccountRows.put(holder.withoutEmail(now: now), replacing: holder, in: rows)
            for id in endedOfHolder { SessionRows.delete(id, of: holder.uid, in: rows) }
        }
        AccountRows.put(account, replacing: before, in: rows)
        for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
        for recovery in recoveries + [code] { CodeRows.delete(recovery, in: rows) }
        rows.audit(.codeApplied, of: account.uid, reason: code.type.rawValue)
        return code.found
    }

    /// The account of an accepted sign-up, where people still sign up with such addresses.
    private func makeAccount(
        by code: CodeRecord, _ passwordHash: PasswordHash?, now: Int64, in rows: AuthTransaction
    ) throws -> Auth.Code.Found {
        _ = try self.account(of: code, in: rows)
        try SignUpPolicy(service.configuration).check(isAnonymous: false)
        do { _ = try AccountFormPolicy(service.configuration, isOwn: true).email(code.to) } catch {
            throw AuthError.invalidFields([error])
        }
        var account = try AccountRows.newAccount(service.environment.newUID(), at: now, in: rows)
        account.email = code.to
        account.initialEmail = code.to
        account.emailVerified = true
        (account.passwordHash, account.passwordUpdatedAt) = (passwordHash, now)
        try AccountRows.checkNames(of: account, replacing: nil, in: rows)
        AccountRows.put(account, replacing: nil, in: rows)
        CodeRows.delete(code, in: rows)
        rows.audit(.codeApplied, of: account.uid, reason: code.type.rawValue)
        return code.found
    }

    /// Another account with the address that a code brings back, whose owner has not proved to have it; nil: none.
    private func unprovedHolder(of code: CodeRecord, in rows: some StoreReading) throws -> AccountRecord? {
        guard code.type == .recoverEmail, let holder = try AccountRows.find(.email(code.to), in: rows),
            holder.uid != code.uid, !holder.emailVerified
        else { return nil }
        return holder
    }
}

extension CodeRecord {
    var needsPassword: Bool { type == .passwordReset || type == .invite || type == .signUp }
    var takesPassword: Bool { needsPassword || type == .recoverEmail }

    /// What it changes in its account. With an address that is brought back, the password of the thief does not stay;
    /// nor do identities of providers with it, or with a new password: a thief may have linked them.
    fileprivate func change(_ passwordHash: PasswordHash?) -> AccountChange {
        var change = AccountChange()
        change.emailVerified = true
        change.passwordHash = passwordHash
        if type == .changeEmail || type == .recoverEmail { change.email = to }
        if type == .recoverEmail, passwordHash == nil { change.deletions = [.password] }
        change.deletesIdentities = type == .passwordReset || type == .recoverEmail
        return change
    }
}

extension AccountRecord {
    fileprivate func withoutEmail(now: Int64) -> AccountRecord {
        var change = AccountChange()
        change.deletions = [.email]
        return change.applied(to: self, now: now)
    }
}
