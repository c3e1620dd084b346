import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signIn`: a session for a name and its password.
struct SignInMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.SignIn.self, in: &router) { try await $0.signIn($1, $2) }
    }

    /// The response and the work are the same whether the name or the password is wrong (spec auth §9).
    func signIn(_ request: Auth.SignIn, _ origin: CallOrigin) async throws -> Auth.Session {
        guard configuration.allowsPasswordSignIn else { throw AuthError.passwordSignInDisabled }
        let name = try signInName(request)
        guard !request.password.isEmpty else {
            throw AuthError.invalidFields([FieldProblem("password", "MISSING_PASSWORD", "The password is missing")])
        }
        // Before the password is hashed.
        let newSession = try service.newSession(request.label, origin)
        let start = ContinuousClock.now
        let attempt: Attempt
        do { attempt = try await admit(name, newSession, origin) } catch {
            service.auditWriter.signInFailed(error, name: name.text)
            metrics.signInEnded(error is AuthError ? .limited : .failed, in: ContinuousClock.now - start)
            throw error
        }
        do {
            let session = try await signIn(attempt, request.password, origin.hashingClient)
            attempts.end(attempt.target, isRight: true)
            metrics.signInEnded(.ok, in: ContinuousClock.now - start)
            return session
        } catch {
            attempts.end(attempt.target, isRight: Self.isRight(after: error))
            let exact = Self.exact(error, hasAccount: attempt.account != nil)
            service.auditWriter.signInFailed(exact, uid: attempt.account?.uid, name: name.text)
            metrics.signInEnded(AuthMetrics.SignInResult(error), in: ContinuousClock.now - start)
            throw error
        }
    }

    /// A password that the limits allow to check.
    private struct Attempt {
        var account: AccountRecord?
        /// Begins if the password is right.
        var session: AuthService.NewSession
        var target: AttemptLedger.Target
    }

    private func admit(
        _ name: AccountName, _ newSession: AuthService.NewSession, _ origin: CallOrigin
    ) async throws -> Attempt {
        try attempts.admit(.signIn, from: origin.address)
        let account = try await store.read { try AccountRows.find(name, in: $0) }
        // One count for all names of an account.
        let counted = account.map { .uid($0.uid) } ?? name
        try attempts.admitSignIn(to: counted.attemptKey, from: origin.address)
        let isKnown = newSession.device.mark.isContained(in: account?.networks)
        // The account has not signed in from every /64 of a /48 that is known, and a /48 has very many.
        let network = isKnown ? origin.address?.network : origin.address?.site
        let target = AttemptLedger.Target(account: counted.attemptKey, network: network ?? "", isKnown: isKnown)
        try attempts.begin(target)
        return Attempt(account: account, session: newSession, target: target)
    }

    private func signIn(_ attempt: Attempt, _ typed: String, _ client: HashingClient) async throws -> Auth.Session {
        let account = attempt.account
        // Longer than any account's password: hashed as an empty one, so that it takes as long as every wrong password.
        let isTooLong = typed.utf8.count > configuration.limits.passwordBytesMax
        let password = Password(isTooLong ? "" : typed)
        let isRight = try await passwords.isRight(password, isTooLong ? nil : account?.passwordHash, for: client)
        guard let account, let stored = account.passwordHash, isRight else {
            if configuration.hidesWhoExists { throw AuthError.invalidCredentials }
            throw account == nil ? AuthError.emailNotFound : AuthError.invalidPassword
        }
        // Only a caller with the right password learns that the account is disabled.
        guard !account.disabled else { throw AuthError.userDisabled }
        let strengthened = try await strengthened(password, stored, client)
        return try await begin(attempt, of: account.uid, Checked(hash: stored, strengthened: strengthened))
    }

    /// A right password.
    private struct Checked {
        var hash: PasswordHash
        /// The password hashed with the current cost; nil: the stored hash stays.
        var strengthened: PasswordHash?
    }

    /// Begins the session, if the checked password is still the account's.
    private func begin(_ attempt: Attempt, of uid: String, _ checked: Checked) async throws -> Auth.Session {
        let newSession = attempt.session
        let sessionsMax = configuration.limits.sessionsPerAccountMax
        let granted = try await service.write { [environment] rows in
            let now = environment.now()
            guard let before = try AccountRows.find(uid, in: rows), before.passwordHash?.text == checked.hash.text
            else {
                throw AuthError.invalidCredentials
            }
            guard !before.disabled else { throw AuthError.userDisabled }
            let surplus = try SessionRows.surplus(of: uid, countMax: sessionsMax, in: rows)
            var account = before
            account.lastLoginAt = now
            account.networks = newSession.device.mark.added(to: before.networks)
            if let strengthened = checked.strengthened { account.passwordHash = strengthened }
            let record = newSession.record(of: account, now: now)
            AccountRows.put(account, replacing: before, in: rows)
            for id in surplus { SessionRows.delete(id, of: uid, in: rows) }
            SessionRows.put(record, in: rows)
            rows.audit(.signedIn, of: record)
            return AuthService.Granted(account: account, record: record, at: now)
        }.outcome
        return try service.session(granted, newSession.token)
    }

    /// The password hashed with the current cost when it was hashed with less, with more memory, or by other software;
    /// nil when there is nothing to do, or the hashing pool is full.
    private func strengthened(
        _ password: Password, _ stored: PasswordHash, _ client: HashingClient
    ) async throws -> PasswordHash? {
        guard passwords.isOutdated(stored) else { return nil }
        do {
            return try await passwords.hash(password, for: client)
        } catch AuthError.tooManyAttempts {
            return nil
        }
    }

    private func signInName(_ request: Auth.SignIn) throws -> AccountName {
        let policy = AccountFormPolicy(configuration, takesStored: true)
        do {
            switch (request.email, request.username) {
            case (let email?, nil): return .email(try policy.email(email))
            case (nil, let username?): return .username(try policy.username(username))
            case (nil, nil): throw FieldProblem("email", "MISSING_EMAIL", "An e-mail address or a username is missing")
            case (_?, _?):
                throw FieldProblem("username", "INVALID_USERNAME", "Give the e-mail address or the username, not both")
            }
        } catch let problem as FieldProblem {
            throw AuthError.invalidFields([problem])
        }
    }

    /// Whether the account or the password was wrong, for the audit.
    private static func exact(_ error: any Error, hasAccount: Bool) -> any Error {
        guard error as? AuthError == .invalidCredentials else { return error }
        return hasAccount ? AuthError.invalidPassword : .emailNotFound
    }

    /// Whether the error means a right or a wrong password; nil: neither.
    private static func isRight(after error: any Error) -> Bool? {
        switch error as? AuthError {
        case .invalidCredentials, .invalidPassword, .emailNotFound: false
        default: nil
        }
    }
}

extension AccountName {
    fileprivate var text: String {
        switch self {
        case .uid(let text), .email(let text), .username(let text), .phoneNumber(let text), .identity(_, let text): text
        }
    }

    /// The key for counting attempts: the requested name, whether it exists or not.
    fileprivate var attemptKey: String {
        switch self {
        case .uid(let uid): "uid:\(uid)"
        case .email(let email): "email:\(email)"
        case .username(let username): "username:\(username)"
        case .phoneNumber(let number): "phone:\(number)"
        case .identity(let provider, let uid): "identity:\(provider):\(uid)"
        }
    }
}
