import HatoModel
import HatoRPC
import HatoStorage

/// One sign-in with a verified identity of a provider, as a transaction: which account it is, and what becomes of it
/// (spec auth §9, "Account linking").
struct ProviderSignIn: Sendable {
    /// What the transaction has done.
    struct Outcome: Sendable {
        var granted: AuthService.Granted
        var isNewUser = false
        var linked = false
    }

    /// The account of the sign-in before anything is written.
    private struct Change {
        /// Nil: it is made.
        var before: AccountRecord?
        var account: AccountRecord
        var isNewUser = false
        var linked = false
        /// Whether all sessions end, and with them the codes for former addresses.
        var endsSessions = false
    }

    private let service: AuthService
    private let identity: ProviderIdentity
    private let session: AuthService.NewSession
    /// Of an account that is made.
    private let newUID: String
    /// The user whose account gets the identity; nil: it signs in.
    var own: Caller.User?
    /// Whether an identity that has an account is an error.
    var linkOnly = false
    /// For an account that is made, or that was anonymous.
    var displayName: String?
    /// Of the client.
    var address: ClientAddress?

    init(_ service: AuthService, _ identity: ProviderIdentity, _ session: AuthService.NewSession) {
        self.service = service
        self.identity = identity
        self.session = session
        newUID = service.environment.newUID()
    }

    private var configuration: AuthConfiguration { service.configuration }

    /// Reads first and writes after. Throws `AuthError`; then the token stays good.
    func run(in rows: AuthTransaction) throws -> Outcome {
        let now = service.environment.now()
        guard let provider = try ProviderRows.find(identity.provider, in: rows), provider.issuer == identity.issuer
        else {
            throw AuthError.unknownProvider
        }
        guard try UsedProviderTokens.isGood(identity, in: rows) else { throw AuthError.usedProviderToken }
        let usedCount = try UsedProviderTokens.count(in: rows)
        guard usedCount < configuration.limits.usedProviderTokensMax else {
            throw AuthError.tooManyAttempts(retryAfterMilliseconds: 60_000)
        }
        var change = try self.change(provider, now: now, in: rows)
        if change.account.disabled { throw AuthError.userDisabled }
        if change.endsSessions, change.before != nil { change.account.endTokens(at: now) }
        setInfo(of: &change.account)
        change.account.lastLoginAt = now
        change.account.networks = session.device.mark.added(to: change.account.networks)
        let (before, account) = (change.before, change.account)
        try AccountRows.checkNames(of: account, replacing: before, in: rows)
        let ended = try endedSessions(change, in: rows)
        // Linking ends no code: a thief of the account, too, can link an identity of theirs.
        let recoveries = change.endsSessions && own == nil ? try CodeRows.recoveries(of: account.uid, in: rows) : []
        let record = session.record(of: account, now: now, by: try SignInProvider(identity.provider))
        AccountRows.put(account, replacing: before, in: rows)
        for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
        for code in recoveries { CodeRows.delete(code, in: rows) }
        SessionRows.put(record, in: rows)
        rows.audit(.signedIn, of: record)
        UsedProviderTokens.put(identity, count: usedCount, in: rows)
        return Outcome(
            granted: AuthService.Granted(account: account, record: record, at: now), isNewUser: change.isNewUser,
            linked: change.linked)
    }

    private func endedSessions(_ change: Change, in rows: some StoreReading) throws -> [[UInt8]] {
        guard change.before != nil else { return [] }
        guard !change.endsSessions else { return try SessionRows.ids(of: change.account.uid, in: rows) }
        return try SessionRows.surplus(
            of: change.account.uid, countMax: configuration.limits.sessionsPerAccountMax, in: rows)
    }

    // MARK: Which account

    private func change(_ provider: ProviderRow, now: Int64, in rows: some StoreReading) throws -> Change {
        let holder = try AccountRows.find(.identity(provider: identity.provider, uid: identity.uid), in: rows)
        if let own {
            let account = try AccountChecks.ownAccount(own, in: rows)
            guard let holder else { return try link(own, account, provider, in: rows) }
            if linkOnly, holder.uid != account.uid { throw AuthError.identityHasAccount }
            return Change(before: holder, account: holder, linked: holder.uid == account.uid)
        }
        if let holder { return Change(before: holder, account: holder) }
        if let email = provenEmail(provider), let found = try AccountRows.find(.email(email), in: rows) {
            return try adopt(found)
        }
        return try make(provider, now: now, in: rows)
    }

    /// The identity becomes one of the caller's account.
    private func link(
        _ user: Caller.User, _ own: AccountRecord, _ provider: ProviderRow, in rows: some StoreReading
    ) throws -> Change {
        try AccountChecks.requireRecentSignIn(user, own, service, now: service.environment.now())
        _ = try service.ownSession(of: user, among: try SessionRows.ids(of: own.uid, in: rows))
        guard !own.has(identity.provider) else { throw AuthError.providerHasIdentity }
        var account = own
        account.identities.append(LinkedIdentity(provider: identity.provider, uid: identity.uid))
        // What it was made without a credential for is over: it is an account like others now.
        if own.isAnonymous {
            try checkSignUp(provider)
            try setProfile(&account, provider, in: rows)
            // A proved address ends the codes for former ones instead.
            if !account.emailVerified {
                try FormerAddresses(service).requireProof(of: account, replacing: own, in: rows)
            }
            return Change(before: own, account: account, linked: true, endsSessions: true)
        }
        return Change(before: own, account: account, linked: true)
    }

    /// The identity signs in to the account with its verified address. If that account never verified the address, it
    /// may be that of a person who signed up with the address of another: whatever that person could sign in with goes.
    private func adopt(_ found: AccountRecord) throws -> Change {
        guard !found.disabled else { throw AuthError.userDisabled }
        var account = found
        if !found.emailVerified {
            account.passwordHash = nil
            account.passwordUpdatedAt = nil
            account.identities = []
            account.emailVerified = true
        }
        // Another user of the same provider has had the address before.
        guard !account.has(identity.provider) else { throw AuthError.emailExists }
        account.identities.append(LinkedIdentity(provider: identity.provider, uid: identity.uid))
        return Change(before: found, account: account, linked: true, endsSessions: !found.emailVerified)
    }

    private func make(_ provider: ProviderRow, now: Int64, in rows: some StoreReading) throws -> Change {
        try checkSignUp(provider)
        var account = try AccountRows.newAccount(newUID, at: now, in: rows)
        account.identities = [LinkedIdentity(provider: identity.provider, uid: identity.uid)]
        try setProfile(&account, provider, in: rows)
        return Change(before: nil, account: account, isNewUser: true)
    }

    /// Counts one more among the sign-ups, as `auth.signUp` does.
    private func checkSignUp(_ provider: ProviderRow) throws {
        guard provider.allowsSignUp, configuration.signUp == .open else { throw AuthError.administratorsOnly }
        try service.attempts.admit(.signUp, from: address)
    }

    // MARK: What the provider says

    private var forms: AccountFormPolicy { AccountFormPolicy(configuration, isOwn: true) }

    /// The address that is the user's, as a trusted provider has verified.
    private func provenEmail(_ provider: ProviderRow) -> String? {
        guard provider.trustsEmail, identity.emailVerified, let text = identity.email,
            let email = try? AccountFormPolicy(configuration, takesStored: true).email(text)
        else { return nil }
        // Other letters, such as the sign of the Kelvin, are another mailbox for some servers.
        return Self.isASCII(email) && !Self.isASCII(text) ? nil : email
    }

    private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

    /// Gives an account without credentials the address, name and picture of the identity. An address that is none is
    /// left out, unless people sign up with addresses of some domains only.
    private func setProfile(
        _ account: inout AccountRecord, _ provider: ProviderRow, in rows: some StoreReading
    ) throws {
        var email: String?
        do throws(FieldProblem) {
            if let text = identity.email { email = try forms.email(text) }
        } catch {
            guard configuration.emailDomains.isEmpty else {
                throw AuthError.invalidFields([FieldProblem("idToken", error.reason, error.message)])
            }
        }
        if email == nil, !configuration.emailDomains.isEmpty {
            throw AuthError.invalidFields([
                FieldProblem(
                    "idToken", "MISSING_EMAIL", "The token has no e-mail address: accounts are for some domains")
            ])
        }
        // Otherwise an address that nothing proves would show whether it is taken.
        let mayTell = !configuration.signUpAlwaysAccepts || email == provenEmail(provider)
        if let email, mayTell {
            guard try rows.row(AuthKey.email(email)) == nil else { throw AuthError.emailExists }
            account.email = email
            account.emailVerified = email == provenEmail(provider)
            account.initialEmail = account.initialEmail ?? email
        }
        // What a provider says may be no name here.
        let name = try? forms.check(AccountForm(displayName: identity.displayName)).displayName
        account.displayName = account.displayName ?? displayName ?? name
        let photoUrl = try? forms.check(AccountForm(photoUrl: identity.photoUrl)).photoUrl
        account.photoUrl = account.photoUrl ?? photoUrl
    }

    /// Keeps what the provider says now of the identity, as far as it is short enough.
    private func setInfo(of account: inout AccountRecord) {
        guard let index = account.identities.firstIndex(where: { $0.provider == identity.provider }) else { return }
        func kept(_ text: String?, _ old: String?) -> String? {
            guard let text, text.utf8.count <= 2_048, !text.utf8.contains(0) else { return old }
            return text
        }
        var linked = account.identities[index]
        linked.email = kept(identity.email, linked.email)
        linked.displayName = kept(identity.displayName, linked.displayName)
        linked.photoUrl = kept(identity.photoUrl, linked.photoUrl)
        account.identities[index] = linked
    }
}

extension AccountRecord {
    /// Whether an identity of the provider signs in to it.
    fileprivate func has(_ provider: String) -> Bool { identities.contains { $0.provider == provider } }
}
