import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage

/// `auth.signUp`: an account and its first session.
struct SignUpMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.SignUp.self, in: &router) { method, request, origin in
            if request.dryRun == true {
                try await method.check(request, origin)
                return Auth.SignUp.Result(nil)
            }
            if method.configuration.signUpAlwaysAccepts, request.email != nil, request.idToken == nil {
                try await method.accept(request, origin)
                return .accepted
            }
            return Auth.SignUp.Result(try await method.signUp(request, origin))
        }
    }

    func signUp(_ request: Auth.SignUp, _ origin: CallOrigin) async throws -> Auth.Session {
        let (isAnonymous, form) = (request.isAnonymous, AccountForm(request))
        // Before a password is hashed.
        let newSession = try service.newSession(request.label, origin)
        let upgrade = try upgrade(request)
        let before = try await account(before: upgrade)
        let checked = try await checked(form, before, isAnonymous: isAnonymous) { address in
            // A form with other mistakes makes no account, so that it could try many addresses unseen.
            guard !configuration.hidesWhoExists else { return }
            try attempts.admit(.signUpCheck, from: origin.address)
            try await store.read { try checkFree(address, upgrade, in: $0) }
        }
        try attempts.admit(isAnonymous ? .anonymousSignUp : .signUp, from: origin.address)
        // The transaction checks again.
        try await store.read { try checkFree(checked, upgrade, in: $0) }
        var hash: PasswordHash?
        if let password = checked.password { hash = try await passwords.hash(password, for: origin.hashingClient) }
        let change = AccountChange(checked, passwordHash: hash)
        let session =
            if let upgrade {
                try await apply(change, upgrade, newSession)
            } else {
                try await makeAccount(change, newSession)
            }
        metrics.count(.signedUp)
        return session
    }

    /// The form of a sign-up, where people may sign up. Throws `AuthError`.
    ///
    /// - Parameter requireFree: Throws when another account has the e-mail address, which is all that it is given.
    func checked(
        _ form: AccountForm, _ before: AccountRecord? = nil, isAnonymous: Bool = false,
        requireFree: (AccountFormPolicy.Checked) async throws -> Void = { _ in }
    ) async throws -> AccountFormPolicy.Checked {
        let missing = missing(of: form, before, isAnonymous: isAnonymous)
        if missing.isEmpty { try SignUpPolicy(configuration).check(isAnonymous: isAnonymous) }
        return try await AccountFormPolicy(configuration, isOwn: true)
            .check(form, before: before, missing: missing, requireFree: requireFree)
    }

    /// Throws `AuthError.invalidFields` with every problem of the form, or what else would refuse the sign-up. Keeps
    /// and hashes nothing.
    func check(_ request: Auth.SignUp, _ origin: CallOrigin) async throws {
        try attempts.admit(.signUpCheck, from: origin.address)
        let form = AccountForm(request)
        let policy = AccountFormPolicy(configuration, isOwn: true)
        let upgrade = try upgrade(request)
        let before = try await account(before: upgrade)
        // Before the names: where people do not sign up by themselves, they do not learn which are taken.
        try SignUpPolicy(configuration).check(isAnonymous: request.isAnonymous)
        var problems = missing(of: form, before, isAnonymous: request.isAnonymous)
        problems += policy.labelProblem(request.label).map { [$0] } ?? []
        problems += try await store.read { try taken(form, policy, upgrade, in: $0) }
        _ = try policy.check(form, names: before?.signInNames ?? [], missing: problems)
    }

    private func upgrade(_ request: Auth.SignUp) throws -> AccountUpgrade? {
        try request.idToken.map { AccountUpgrade(service, of: try service.user(of: $0)) }
    }

    private func account(before upgrade: AccountUpgrade?) async throws -> AccountRecord? {
        guard let upgrade else { return nil }
        return try await store.read { try upgrade.account(in: $0) }
    }

    /// What the form lacks. A credential needs both parts, or neither. An empty part counts as wrong, not as missing.
    private func missing(of form: AccountForm, _ before: AccountRecord?, isAnonymous: Bool) -> [FieldProblem] {
        guard !isAnonymous else { return [] }
        var missing: [FieldProblem] = []
        if form.email == nil, form.username == nil, before?.signInNames.isEmpty ?? true {
            missing.append(FieldProblem("email", "MISSING_EMAIL", "An e-mail address or a username is missing"))
        }
        if form.password == nil {
            missing.append(FieldProblem("password", "MISSING_PASSWORD", "The password is missing"))
        }
        return missing + (before?.email == nil ? SignUpPolicy(configuration).missingEmail(form) : [])
    }

    /// The names in a form that another account has, those that are none left out. Throws what else refuses them.
    private func taken(
        _ form: AccountForm, _ policy: AccountFormPolicy, _ upgrade: AccountUpgrade?, in rows: some StoreReading
    ) throws -> [FieldProblem] {
        var username = AccountFormPolicy.Checked()
        username.username = form.username.flatMap { try? policy.username($0) }
        var email = AccountFormPolicy.Checked()
        email.email = form.email.flatMap { try? policy.email($0) }
        var taken: [FieldProblem] = []
        do { try checkFree(email, upgrade, in: rows) } catch AuthError.emailExists {
            if !configuration.hidesWhoExists {
                taken.append(FieldProblem("email", "EMAIL_EXISTS", "Another account has this e-mail address"))
            }
        }
        do { try checkFree(username, upgrade, in: rows) } catch AuthError.usernameExists {
            taken.append(FieldProblem("username", "USERNAME_EXISTS", "Another account has this username"))
        }
        return taken
    }

    /// Throws unless the new account, or that of the upgrade, may have the names of the form.
    private func checkFree(
        _ form: AccountFormPolicy.Checked, _ upgrade: AccountUpgrade?, in rows: some StoreReading
    ) throws {
        let change = AccountChange(form, passwordHash: nil)
        let now = environment.now()
        guard let upgrade else {
            let account = change.applied(to: AccountRecord(uid: "", createdAt: now), now: now)
            return try AccountRows.checkNames(of: account, replacing: nil, in: rows)
        }
        let before = try upgrade.account(in: rows)
        try upgrade.checkNames(of: change.applied(to: before, now: now), replacing: before, in: rows)
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
    private func apply(
        _ change: AccountChange, _ upgrade: AccountUpgrade, _ newSession: AuthService.NewSession
    ) async throws -> Auth.Session {
        let granted = try await service.write { [environment] rows in
            let now = environment.now()
            let before = try upgrade.account(in: rows)
            var account = change.applied(to: before, now: now)
            account.lastLoginAt = now
            account.networks = newSession.device.mark.added(to: nil)
            try upgrade.checkNames(of: account, replacing: before, in: rows)
            let ended = try SessionRows.ids(of: account.uid, in: rows)
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
    init(_ request: Auth.SignUp) {
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
