import HatoModel
import HatoRPC
import HatoStorage

extension AuthService {
    func addAccountMethods(to router: inout RPCRouter) {
        handle(Auth.Account.Get.self, in: &router) { service, _, origin in try await service.account(origin) }
        handle(Auth.Account.Update.self, in: &router) { try await $0.updateAccount($1, $2) }
        handle(Auth.Account.Delete.self, in: &router) { service, _, origin in try await service.deleteAccount(origin) }
    }

    func account(_ origin: CallOrigin) async throws -> Auth.Account {
        let user = try origin.user()
        return try await store.read { try Self.ownAccount(user, in: $0).account }
    }

    func updateAccount(_ request: Auth.Account.Update, _ origin: CallOrigin) async throws -> Auth.Account.Update.Result
    {
        let user = try origin.user()
        let before = try await store.read { try Self.ownAccount(user, in: $0) }
        let deletions = try Self.deletions(request)
        let form = AccountForm(
            email: request.email, username: request.username, password: request.password,
            displayName: request.displayName, photoUrl: request.photoUrl)
        let checked = try AccountFormPolicy(configuration).check(
            form, names: [before.email, before.username].compactMap { $0 },
            missing: Self.missingHalves(form, before, deletions))
        if Self.touchesCredential(form, deletions) { try requireRecentSignIn(user, before) }
        var hash: PasswordHash?
        if let password = checked.password { hash = try await passwords.hash(password) }
        var change = AccountChange(checked, passwordHash: hash)
        change.deletions = deletions
        return try await update(user, change, form)
    }

    func deleteAccount(_ origin: CallOrigin) async throws -> Empty {
        let user = try origin.user()
        let now = environment.now()
        _ = try await store.write { [self] rows in
            let account = try Self.ownAccount(user, in: rows)
            try requireRecentSignIn(user, account, now: now)
            let sessions = try SessionRows.ids(of: account.uid, in: rows)
            for id in sessions { SessionRows.delete(id, of: account.uid, in: rows) }
            AccountRows.delete(account, in: rows)
        }
        return Empty()
    }

    /// The account of a caller who may still use it (spec auth §4, order of checks).
    static func ownAccount(_ user: Caller.User, in rows: some StoreReading) throws -> AccountRecord {
        guard let account = try AccountRows.find(user.uid, in: rows) else { throw AuthError.userNotFound }
        if let issuedAt = user.issuedAt, issuedAt < account.validSince { throw AuthError.sessionOver }
        guard !account.disabled else { throw AuthError.userDisabled }
        return account
    }

    // MARK: Steps

    private struct Updated: Sendable {
        var account: AccountRecord
        /// Nil when the earlier sessions live on.
        var granted: Granted?
    }

    /// Asks again what was asked of the account before the password was hashed: another call may have changed it while
    /// the hash took its time.
    private func update(
        _ user: Caller.User, _ change: AccountChange, _ form: AccountForm
    ) async throws -> Auth.Account.Update.Result {
        let beginning = newBeginning()
        let updated = try await store.write { [self] rows in
            let now = environment.now()
            let before = try Self.ownAccount(user, in: rows)
            try Self.refuse(Self.missingHalves(form, before, change.deletions))
            if Self.touchesCredential(form, change.deletions) { try requireRecentSignIn(user, before, now: now) }
            let account = change.applied(to: before, now: now)
            try AccountRows.checkNames(of: account, replacing: before, in: rows)
            guard change.endsSessions(before, account) else {
                AccountRows.put(account, replacing: before, in: rows)
                return Updated(account: account)
            }
            let ended = try SessionRows.ids(of: account.uid, in: rows)
            let record = beginning.record(of: account, now: now)
            AccountRows.put(account, replacing: before, in: rows)
            for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
            SessionRows.put(record, in: rows)
            return Updated(account: account, granted: Granted(account: account, record: record, at: now))
        }.outcome
        guard let granted = updated.granted else { return try renewed(user, updated.account) }
        let session = try session(granted, beginning.token)
        return Auth.Account.Update.Result(
            idToken: session.idToken, refreshToken: session.refreshToken, expiresIn: session.expiresIn,
            account: updated.account.account)
    }

    /// The same session with the new claims. It ends when the presented token would have: a stolen ID token must not
    /// live on by changing a name.
    private func renewed(_ user: Caller.User, _ account: AccountRecord) throws -> Auth.Account.Update.Result {
        let now = environment.now() / 1000
        let expiresAt = user.expiresAt.map { $0 / 1000 } ?? now + configuration.tokenLifetimeSeconds
        let named = user.claims["firebase"]?["sign_in_provider"]?.string.flatMap { SignInProvider(rawValue: $0) }
        let claims = IDTokenClaims(
            account: account, provider: named ?? (account.isAnonymous ? .anonymous : .password),
            authTime: user.authTime ?? now, issuedAt: now, expiresAt: expiresAt)
        return Auth.Account.Update.Result(
            idToken: try sign(claims), expiresIn: Int(max(0, expiresAt - now)), account: account.account)
    }

    private func requireRecentSignIn(_ user: Caller.User, _ account: AccountRecord, now: Int64? = nil) throws {
        let ageMax = configuration.credentialAgeSecondsMax
        // Who has nothing to sign in with cannot be asked to.
        guard ageMax > 0, !account.isAnonymous, let authTime = user.authTime else { return }
        guard (now ?? environment.now()) / 1000 - authTime <= ageMax else { throw AuthError.credentialTooOld }
    }

    private static func touchesCredential(_ form: AccountForm, _ deletions: Set<Auth.AccountAttribute>) -> Bool {
        form.email != nil || form.password != nil || form.username != nil
            || !deletions.isDisjoint(with: [.email, .password, .username])
    }

    private static func deletions(_ request: Auth.Account.Update) throws -> Set<Auth.AccountAttribute> {
        try deletions(
            request.deleteAttributes,
            given: [
                .email: request.email, .password: request.password, .username: request.username,
                .displayName: request.displayName, .photoUrl: request.photoUrl,
            ])
    }

    /// What to delete; never what is given at the same time.
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

    /// Halves of a credential that lack the other: a password without e-mail and username opens nothing. What there
    /// is of it is never taken away in silence.
    static func missingName(
        _ form: AccountForm, _ before: AccountRecord?, _ deletions: Set<Auth.AccountAttribute>
    ) -> [FieldProblem] {
        let hasEmail = form.email != nil || (before?.email != nil && !deletions.contains(.email))
        let hasUsername = form.username != nil || (before?.username != nil && !deletions.contains(.username))
        guard !hasEmail, !hasUsername else { return [] }
        if form.password != nil {
            return [FieldProblem("email", "MISSING_EMAIL", "An e-mail address or a username is missing")]
        }
        guard before?.passwordHash != nil, !deletions.contains(.password) else { return [] }
        return [
            FieldProblem(
                "deleteAttributes", "MISSING_EMAIL",
                "Without an e-mail address or a username nobody can sign in with the password: "
                    + "delete the password too, or give the account another name")
        ]
    }

    /// Throws when there is a problem.
    static func refuse(_ problems: [FieldProblem]) throws(AuthError) {
        if !problems.isEmpty { throw .invalidFields(problems) }
    }

    private static func missingHalves(
        _ form: AccountForm, _ before: AccountRecord, _ deletions: Set<Auth.AccountAttribute>
    ) -> [FieldProblem] {
        missingName(form, before, deletions) + missingPassword(form, before)
    }

    /// An anonymous account gets a whole credential, as with `auth.signUp`. Its owner may take the password back
    /// alone, and administrators may make accounts with a name alone (spec auth §5).
    private static func missingPassword(_ form: AccountForm, _ before: AccountRecord) -> [FieldProblem] {
        guard before.isAnonymous, form.email != nil || form.username != nil, form.password == nil else { return [] }
        return [
            FieldProblem(
                "password", "MISSING_PASSWORD",
                "The password is missing: an anonymous account gets it together with its e-mail address or username")
        ]
    }
}
