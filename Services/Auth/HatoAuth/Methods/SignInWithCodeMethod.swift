import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signInWithCode`: a session for the receiver of the mail of an address.
struct SignInWithCodeMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.SignInWithCode.self, in: &router) { try await $0.signIn($1, $2) }
    }

    func signIn(_ request: Auth.SignInWithCode, _ origin: CallOrigin) async throws -> Auth.Session {
        guard configuration.allowsCodeSignIn else { throw AuthError.operationNotAllowed }
        let newSession = try service.newSession(request.label, origin)
        let linked = try request.idToken.map { try service.user(of: $0) }
        let checker = try CodeChecker(service, code: request.code, email: request.email, types: [.signIn])
        let plan = Plan(
            session: newSession, uid: environment.newUID(), linked: linked,
            makesAccounts: request.createAccount == true)
        let (granted, isNewUser) = try await checker.audited {
            try await checker.take(from: origin) { [self] code, rows in try begin(plan, code, in: rows) }
        }
        if isNewUser { metrics.count(.signedUp) }
        return try service.session(granted, newSession.token, isNewUser: isNewUser)
    }

    private struct Plan: Sendable {
        var session: AuthService.NewSession
        /// Of an account that is made.
        var uid: String
        /// The user whose account gets the address.
        var linked: Caller.User?
        var makesAccounts: Bool
    }

    private func begin(
        _ plan: Plan, _ code: CodeRecord, in rows: AuthTransaction
    ) throws -> (AuthService.Granted, isNewUser: Bool) {
        let now = environment.now()
        let found = try AccountRows.find(.email(code.to), in: rows)
        let before: AccountRecord?
        if let linked = plan.linked {
            let own = try AccountChecks.ownAccount(linked, in: rows)
            if let found, found.uid != own.uid { throw AuthError.emailExists }
            if let email = own.email, email != code.to { throw AuthError.hasCredentials }
            if own.email == nil {
                try AccountChecks.requireRecentSignIn(linked, own, service, now: now)
                try checkSignUp(code.to)
            }
            _ = try service.ownSession(of: linked, among: try SessionRows.ids(of: own.uid, in: rows))
            before = own
        } else {
            before = found
            if found == nil {
                guard plan.makesAccounts else { throw AuthError.emailNotFound }
                try checkSignUp(code.to)
            }
        }
        if before?.disabled == true { throw AuthError.userDisabled }
        try check(code, for: before)
        let recoveries = try before.map { try FormerAddresses(service).ended(by: code, of: $0, in: rows) } ?? []
        var account = try before ?? AccountRows.newAccount(plan.uid, at: now, in: rows)
        let ended = try endedSessions(of: before, plan, in: rows)
        account = Self.proved(account, code.to, now: now)
        // Whatever had a token before must not go on, its sessions or not: it may be that of another person.
        if let before, !before.emailVerified { account.endTokens(at: now) }
        account.networks = plan.session.device.mark.added(to: account.networks)
        try AccountRows.checkNames(of: account, replacing: before, in: rows)
        let record = plan.session.record(of: account, now: now, by: .password)
        AccountRows.put(account, replacing: before, in: rows)
        for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
        SessionRows.put(record, in: rows)
        rows.audit(.signedIn, of: record)
        for used in recoveries + [code] { CodeRows.delete(used, in: rows) }
        return (AuthService.Granted(account: account, record: record, at: now), before == nil)
    }

    private func checkSignUp(_ email: String) throws(AuthError) {
        if let problem = SignUpPolicy(configuration).codeSignUpProblem(of: email) { throw problem }
    }

    /// Throws `AuthError.invalidCode` for a code of an account that has changed since, or that got the address since
    /// and has proved it.
    private func check(_ code: CodeRecord, for account: AccountRecord?) throws(AuthError) {
        if code.uid == nil {
            guard account?.email == nil || account?.emailVerified == false else { throw .invalidCode }
        } else {
            guard let account, code.concerns(account) else { throw .invalidCode }
        }
    }

    /// All of them where the address was not proved before: they may be those of a person who signed up with the
    /// address of another. Otherwise those that must make way for one more.
    private func endedSessions(
        of before: AccountRecord?, _ plan: Plan, in rows: some StoreReading
    ) throws -> [[UInt8]] {
        guard let before else { return [] }
        if !before.emailVerified { return try SessionRows.ids(of: before.uid, in: rows) }
        return try SessionRows.surplus(
            of: before.uid, countMax: configuration.limits.sessionsPerAccountMax, in: rows)
    }

    /// The account with the address that is proved now. A password from before, and identities of providers, may be
    /// those of another person.
    private static func proved(_ before: AccountRecord, _ email: String, now: Int64) -> AccountRecord {
        var account = before
        if !before.emailVerified, before.email != nil {
            account.passwordHash = nil
            account.passwordUpdatedAt = nil
            account.identities = []
            account.networks = nil
        }
        account.email = email
        account.emailVerified = true
        account.signsInWithCode = true
        account.initialEmail = account.initialEmail ?? email
        account.lastLoginAt = now
        return account
    }
}
