import HatoModel
import HatoRPC
import HatoStorage

/// `auth.account.…`: the methods of users for their own accounts.
struct AccountMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Account.Get.self, in: &router) { methods, _, origin in try await methods.account(origin) }
        handle(Auth.Account.Update.self, in: &router) { try await $0.updateAccount($1, $2) }
        handle(Auth.Account.Delete.self, in: &router) { methods, _, origin in try await methods.deleteAccount(origin) }
    }

    func account(_ origin: CallOrigin) async throws -> Auth.Account {
        let user = try origin.user()
        return try await store.read { try AccountChecks.ownAccount(user, in: $0).account }
    }

    func updateAccount(_ request: Auth.Account.Update, _ origin: CallOrigin) async throws -> Auth.Account.Update.Result
    {
        let user = try origin.user()
        let before = try await store.read { try AccountChecks.ownAccount(user, in: $0) }
        let deletions = try Self.deletions(request)
        let form = AccountForm(
            email: request.email, username: request.username, password: request.password,
            displayName: request.displayName, photoUrl: request.photoUrl)
        var missing = Self.missingHalves(form, before, deletions)
        if before.isAnonymous, form.email != nil || form.username != nil {
            // As with `auth.signUp`.
            let policy = SignUpPolicy(configuration)
            missing += policy.missingEmail(form)
            if missing.isEmpty { try policy.check(isAnonymous: false) }
        }
        if form.password != nil, !configuration.allowsPasswordSignIn { throw AuthError.operationNotAllowed }
        let isCredential = Self.touchesCredential(form, deletions) || request.deleteProviders?.isEmpty == false
        if isCredential { try requireRecentSignIn(user, before) }
        func admit() throws {
            guard user.hasToken else { return }
            try attempts.admit(isCredential ? .credentialChange : .profileChange, of: user.uid, from: origin.address)
        }
        let policy = AccountFormPolicy(configuration, isOwn: true)
        let checked = try await policy.check(form, before: before, missing: missing) { address in
            try admit()
            try await checkAddress(address, before)
        }
        try admit()
        var hash: PasswordHash?
        if let password = checked.password {
            // A taken name costs no hash; the transaction checks again.
            let probe = AccountChange(checked, passwordHash: nil).applied(to: before, now: environment.now())
            try await store.read { [service] rows in
                try AccountChecks.checkOwnNames(of: probe, replacing: before, service, in: rows)
            }
            hash = try await passwords.hash(password, for: origin.hashingClient)
        }
        var change = AccountChange(checked, passwordHash: hash)
        change.deletions = deletions
        change.deletedProviders = Set(request.deleteProviders ?? [])
        return try await update(user, change, form, try service.newSession(nil, origin))
    }

    func deleteAccount(_ origin: CallOrigin) async throws -> Empty {
        let user = try origin.user()
        _ = try await service.write { [self] rows in
            let now = environment.now()
            let account = try AccountChecks.ownAccount(user, in: rows)
            try requireRecentSignIn(user, account, now: now)
            let sessions = try SessionRows.ids(of: account.uid, in: rows)
            _ = try service.ownSession(of: user, among: sessions)
            try AccountDeletion(account, in: rows).apply(at: now, in: rows)
        }
        return Empty()
    }

    // MARK: Steps

    /// Throws what refuses an address, as far as a form with other mistakes may show it: such a form changes nothing,
    /// so that it could try many addresses unseen.
    private func checkAddress(_ address: AccountFormPolicy.Checked, _ before: AccountRecord) async throws {
        let account = AccountChange(address, passwordHash: nil).applied(to: before, now: environment.now())
        try await store.read { [service] rows in
            if service.configuration.hidesWhoExists {
                try AccountChecks.checkOwnAddress(of: account, replacing: before, service, in: rows)
            } else {
                try AccountChecks.checkOwnNames(of: account, replacing: before, service, in: rows)
            }
        }
    }

    private struct Updated: Sendable {
        var account: AccountRecord
        /// The time of the transaction, in milliseconds since 1970.
        var at: Int64
        /// Nil when the earlier sessions stay valid.
        var granted: AuthService.Granted?
        /// Of the caller's session, where that stays.
        var sessionClaims: JSONObject?
    }

    /// Repeats the checks from before the password was hashed: another call may have changed the account meanwhile.
    private func update(
        _ user: Caller.User, _ change: AccountChange, _ form: AccountForm, _ newSession: AuthService.NewSession
    ) async throws -> Auth.Account.Update.Result {
        let updated = try await service.write { [self] rows in
            let now = environment.now()
            let before = try AccountChecks.ownAccount(user, in: rows)
            try AccountChecks.refuse(Self.missingHalves(form, before, change.deletions))
            if Self.touchesCredential(form, change.deletions) || !change.deletedProviders.isEmpty {
                try requireRecentSignIn(user, before, now: now)
                _ = try service.ownSession(of: user, among: try SessionRows.ids(of: before.uid, in: rows))
            }
            var account = change.applied(to: before, now: now)
            try WaysIn(service).check(account, replacing: before)
            try AccountChecks.checkOwnNames(of: account, replacing: before, service, in: rows)
            guard change.endsSessions(before, account) else {
                let claims = try sessionClaims(of: user, in: rows)
                AccountRows.put(account, replacing: before, in: rows)
                return Updated(account: account, at: now, sessionClaims: claims)
            }
            try Self.requireTime(of: before, now: now)
            let ended = try SessionRows.ids(of: account.uid, in: rows)
            var record = newSession.record(of: account, now: now)
            // The device is the same.
            let own = try service.ownSession(of: user, among: ended)
            let held = try own.flatMap { try SessionRows.find($0, in: rows) }
            try FormerAddresses(service).issueCode(of: before, to: account, in: rows)
            record.label = held?.label
            if let held, held.provider != .anonymous { (record.provider, record.claims) = (held.provider, held.claims) }
            account.networks = newSession.device.mark.added(to: nil)
            AccountRows.put(account, replacing: before, in: rows)
            for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
            SessionRows.put(record, in: rows)
            let granted = AuthService.Granted(account: account, record: record, at: now)
            return Updated(account: account, at: now, granted: granted)
        }.outcome
        if updated.account.email != nil { service.mail?.wake() }
        guard let granted = updated.granted else { return try renewed(user, updated) }
        let session = try service.session(granted, newSession.token)
        return Auth.Account.Update.Result(
            idToken: session.idToken, refreshToken: session.refreshToken, expiresIn: session.expiresIn,
            account: updated.account.account)
    }

    /// Each change that ends tokens issues the next ones a second later than the last, and other services refuse tokens
    /// of a later time than their leeway allows. Throws `AuthError.tooManyAttempts` before.
    private static func requireTime(of before: AccountRecord, now: Int64) throws(AuthError) {
        let ahead = before.validSince - now / 1000 - secondsAheadMax
        guard ahead > 0 else { return }
        throw .tooManyAttempts(retryAfterMilliseconds: ahead * 1000)
    }

    private static let secondsAheadMax: Int64 = 3

    /// The same session with the new claims. The new token expires when the presented one would have: changing a name
    /// must not extend the life of a stolen ID token.
    private func renewed(_ user: Caller.User, _ updated: Updated) throws -> Auth.Account.Update.Result {
        let account = updated.account
        // Not the time after the transaction: another may have ended the session since.
        let now = max(updated.at / 1000, account.validSince)
        let expiresAt = user.expiresAt.map { $0 / 1000 } ?? now + configuration.tokenLifetimeSeconds
        let claims = IDTokenClaims(
            account: account, provider: user.signInProvider ?? (account.isAnonymous ? .anonymous : .password),
            sessionClaims: updated.sessionClaims, session: user.session, authTime: user.authTime ?? now,
            issuedAt: now, expiresAt: expiresAt)
        return Auth.Account.Update.Result(
            idToken: try service.sign(claims), expiresIn: Int(max(0, expiresAt - now)), account: account.account)
    }

    /// The claims that the custom token of the caller's session brought; nil without a session.
    private func sessionClaims(of user: Caller.User, in rows: some StoreReading) throws -> JSONObject? {
        guard user.signInProvider == .custom, let name = user.session else { return nil }
        return try SessionRows.all(of: user.uid, in: rows).first { service.name(of: $0) == name }?.claims
    }

    private func requireRecentSignIn(_ user: Caller.User, _ account: AccountRecord, now: Int64? = nil) throws {
        try AccountChecks.requireRecentSignIn(user, account, service, now: now ?? environment.now())
    }

    private static func touchesCredential(_ form: AccountForm, _ deletions: Set<Auth.AccountAttribute>) -> Bool {
        form.email != nil || form.password != nil || form.username != nil
            || !deletions.isDisjoint(with: [.email, .password, .username])
    }

    private static func deletions(_ request: Auth.Account.Update) throws -> Set<Auth.AccountAttribute> {
        try AccountChecks.deletions(
            AccountChecks.attributes(request.deleteAttributes, ofProviders: request.deleteProviders),
            given: [
                .email: request.email, .password: request.password, .username: request.username,
                .displayName: request.displayName, .photoUrl: request.photoUrl,
            ])
    }

    private static func missingHalves(
        _ form: AccountForm, _ before: AccountRecord, _ deletions: Set<Auth.AccountAttribute>
    ) -> [FieldProblem] {
        AccountChecks.missingName(form, before, deletions) + AccountChecks.lostName(form, before, deletions)
            + missingPassword(form, before)
    }

    /// An account without a password may take an e-mail address alone, and a password later by a code. A username alone
    /// would sign in to nothing. Its owner may delete the password where another way to sign in is left, and
    /// administrators may create accounts with a name alone (spec auth §5).
    private static func missingPassword(_ form: AccountForm, _ before: AccountRecord) -> [FieldProblem] {
        guard before.isAnonymous, before.passwordHash == nil, form.email == nil, form.username != nil,
            form.password == nil
        else { return [] }
        return [
            FieldProblem(
                "password", "MISSING_PASSWORD",
                "The password is missing: an anonymous account gets it together with its username")
        ]
    }
}
