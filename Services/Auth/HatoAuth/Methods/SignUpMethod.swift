import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signUp`: an account and its first session.
struct SignUpMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.SignUp.self, in: &router) { method, request, origin in
            guard request.dryRun == true else { return Auth.SignUp.Result(try await method.signUp(request, origin)) }
            try await method.check(request, origin)
            return Auth.SignUp.Result(nil)
        }
    }

    func signUp(_ request: Auth.SignUp, _ origin: CallOrigin) async throws -> Auth.Session {
        let (isAnonymous, form) = (request.isAnonymous, AccountForm(request))
        // Before a password is hashed.
        let newSession = try service.newSession(request.label, origin)
        let upgraded = try request.idToken.map { try service.user(of: $0) }
        let missing = try missing(of: form, isAnonymous: isAnonymous)
        let checked = try AccountFormPolicy(configuration, isOwn: true).check(form, missing: missing)
        try attempts.admit(isAnonymous ? .anonymousSignUp : .signUp, from: origin.address)
        try await checkFree(checked)
        var hash: PasswordHash?
        if let password = checked.password { hash = try await passwords.hash(password, for: origin.hashingClient) }
        let change = AccountChange(checked, passwordHash: hash)
        let session =
            if let upgraded {
                try await upgrade(upgraded, change, newSession)
            } else {
                try await makeAccount(change, newSession)
            }
        metrics.count(.signedUp)
        return session
    }

    /// Throws `AuthError.invalidFields` with every problem of the form, or what else would refuse the sign-up. Keeps
    /// and hashes nothing.
    func check(_ request: Auth.SignUp, _ origin: CallOrigin) async throws {
        try attempts.admit(.signUpCheck, from: origin.address)
        let form = AccountForm(request)
        let policy = AccountFormPolicy(configuration, isOwn: true)
        _ = try policy.label(request.label)
        let upgraded = try request.idToken.map { try service.user(of: $0) }
        let missing = try missing(of: form, isAnonymous: request.isAnonymous)
        let taken = try await store.read { [configuration, environment] rows in
            if let upgraded {
                let account = try AccountChecks.ownAccount(upgraded, in: rows)
                try Self.refuseUpgrade(of: account, upgraded, configuration, now: environment.now())
            }
            let username = form.username.flatMap { try? policy.username($0) }
            let email = configuration.hidesWhoExists ? nil : form.email.flatMap { try? policy.email($0) }
            var taken: [FieldProblem] = []
            if let email, let holder = try AccountRows.find(.email(email), in: rows), holder.uid != upgraded?.uid {
                taken.append(FieldProblem("email", "EMAIL_EXISTS", "Another account has this e-mail address"))
            }
            if let username, let holder = try AccountRows.find(.username(username), in: rows),
                holder.uid != upgraded?.uid
            {
                taken.append(FieldProblem("username", "USERNAME_EXISTS", "Another account has this username"))
            }
            return taken
        }
        _ = try policy.check(form, missing: missing + taken)
    }

    /// What the form lacks. Throws where people may not sign up by themselves.
    private func missing(of form: AccountForm, isAnonymous: Bool) throws(AuthError) -> [FieldProblem] {
        let policy = SignUpPolicy(configuration)
        let missing = isAnonymous ? [] : missingCredentials(of: form) + policy.missingEmail(form)
        if missing.isEmpty { try policy.check(isAnonymous: isAnonymous) }
        return missing
    }

    /// Throws unless the account may get credentials: one with a password changes it with `auth.account.update`, and
    /// one that has another way to sign in must have used it recently.
    private static func refuseUpgrade(
        of account: AccountRecord, _ user: Caller.User, _ configuration: AuthConfiguration, now: Int64
    ) throws(AuthError) {
        guard account.passwordHash == nil else { throw .hasCredentials }
        try AccountChecks.requireRecentSignIn(user, account, configuration, now: now)
    }

    /// A credential needs both parts, or neither. An empty part counts as wrong, not as missing.
    private func missingCredentials(of form: AccountForm) -> [FieldProblem] {
        var missing: [FieldProblem] = []
        if form.email == nil, form.username == nil {
            missing.append(FieldProblem("email", "MISSING_EMAIL", "An e-mail address or a username is missing"))
        }
        if form.password == nil {
            missing.append(FieldProblem("password", "MISSING_PASSWORD", "The password is missing"))
        }
        return missing
    }

    /// Refuses taken names before a password is hashed; the transaction checks again.
    private func checkFree(_ form: AccountFormPolicy.Checked) async throws {
        guard form.email != nil || form.username != nil else { return }
        try await store.read { rows in
            var probe = AccountRecord(uid: "", createdAt: 0)
            probe.email = form.email
            probe.username = form.username
            try AccountRows.checkNames(of: probe, replacing: nil, in: rows)
        }
    }

    private func makeAccount(
        _ change: AccountChange, _ newSession: AuthService.NewSession
    ) async throws -> Auth.Session {
        let uid = environment.newUID()
        let granted = try await service.write { [environment] rows in
            let now = environment.now()
            var account = change.applied(toNew: AccountRecord(uid: uid, createdAt: now), now: now)
            account.lastLoginAt = now
            account.networks = newSession.device.mark.added(to: nil)
            try AccountRows.checkNames(of: account, replacing: nil, in: rows)
            let record = newSession.record(of: account, now: now)
            AccountRows.put(account, replacing: nil, in: rows)
            SessionRows.put(record, in: rows)
            rows.audit(.signedIn, of: record)
            return AuthService.Granted(account: account, record: record, at: now)
        }.outcome
        return try service.session(granted, newSession.token, isNewUser: true)
    }

    /// An account without password gets credentials and keeps its uid; its earlier sessions end.
    private func upgrade(
        _ user: Caller.User, _ change: AccountChange, _ newSession: AuthService.NewSession
    ) async throws -> Auth.Session {
        let granted = try await service.write { [environment, service, configuration] rows in
            let now = environment.now()
            let before = try AccountChecks.ownAccount(user, in: rows)
            try Self.refuseUpgrade(of: before, user, configuration, now: now)
            var account = change.applied(to: before, now: now)
            account.lastLoginAt = now
            account.networks = newSession.device.mark.added(to: nil)
            try FormerAddresses(service).requireProof(of: account, replacing: before, in: rows)
            try AccountRows.checkNames(of: account, replacing: before, in: rows)
            let ended = try SessionRows.ids(of: account.uid, in: rows)
            _ = try service.ownSession(of: user, among: ended)
            let record = newSession.record(of: account, now: now)
            AccountRows.put(account, replacing: before, in: rows)
            for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
            SessionRows.put(record, in: rows)
            rows.audit(.linked, of: record)
            return AuthService.Granted(account: account, record: record, at: now)
        }.outcome
        return try service.session(granted, newSession.token)
    }
}

extension Auth.SignUp {
    fileprivate var isAnonymous: Bool { email == nil && username == nil && password == nil && idToken == nil }
}

extension AccountForm {
    fileprivate init(_ request: Auth.SignUp) {
        self.init(
            email: request.email, username: request.username, password: request.password,
            displayName: request.displayName)
    }
}

extension AuthService {
    /// The user of an ID token in a parameter.
    func user(of idToken: String) throws -> Caller.User {
        guard idToken.utf8.count <= configuration.limits.idTokenBytesMax else {
            throw RPCError.invalidParams(
                "idToken",
                "'idToken' must have at most \(configuration.limits.idTokenBytesMax) bytes, e.g. an ID token from "
                    + "auth.signIn",
                reason: "credential_too_long")
        }
        do {
            return try authenticator.verify(idToken).caller
        } catch {
            throw error.rpcError
        }
    }
}
