import HatoModel
import HatoRPC
import HatoStorage

/// `auth.users.…`: the methods of administrators for accounts.
struct UsersMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Users.Create.self, in: &router) { methods, request, _ in try await methods.createUser(request) }
        handle(Auth.Users.Get.self, in: &router) { methods, request, _ in try await methods.user(request) }
        handle(Auth.Users.List.self, in: &router) { methods, request, _ in try await methods.users(request) }
        handle(Auth.Users.Update.self, in: &router) { methods, request, _ in try await methods.updateUser(request) }
        handle(Auth.Users.Delete.self, in: &router) { methods, request, _ in try await methods.deleteUser(request) }
        handle(Auth.Users.Revoke.self, in: &router) { methods, request, _ in try await methods.revokeUser(request) }
    }

    func user(_ request: Auth.Users.Get) async throws -> Auth.Account {
        let name = try accountName(request)
        return try await store.read { rows in
            guard let account = try AccountRows.find(name, in: rows) else { throw AuthError.userNotFound }
            return account.account
        }
    }

    func users(_ request: Auth.Users.List) async throws -> Auth.Users.List.Result {
        let (after, limit) = try page(after: request.after, limit: request.limit)
        return try await store.read { rows in
            let page = try AccountRows.page(after: after, limit: limit, in: rows)
            var result = Auth.Users.List.Result(
                users: page.accounts.map(\.account), after: page.hasMore ? page.accounts.last?.uid : nil)
            if request.total == true { result.total = try StoreFigures.find(in: rows).accounts }
            return result
        }
    }

    func createUser(_ request: Auth.Users.Create) async throws -> Auth.Account {
        let form = AccountForm(
            email: request.email, username: request.username, password: request.password,
            displayName: request.displayName, photoUrl: request.photoUrl, phoneNumber: request.phoneNumber,
            customAttributes: request.customAttributes)
        let missing = request.uid.flatMap(UserID.problem(with:)).map { [$0] } ?? []
        let checked = try await AccountFormPolicy(configuration).check(form, before: nil, missing: missing) {
            try await checkAddress($0, replacing: nil)
        }
        var change = AccountChange(checked, passwordHash: try await hash(checked.password))
        change.emailVerified = request.emailVerified
        change.disabled = request.disabled
        let uid = request.uid ?? environment.newUID()
        return try await service.write { [change, environment] rows in
            let now = environment.now()
            var blank = try AccountRows.newAccount(uid, at: now, in: rows)
            blank.isManaged = true
            let account = change.applied(toNew: blank, now: now)
            try AccountRows.checkNames(of: account, replacing: nil, in: rows)
            AccountRows.put(account, replacing: nil, in: rows)
            return account.account
        }.outcome
    }

    func updateUser(_ request: Auth.Users.Update) async throws -> Auth.Account {
        let form = AccountForm(
            email: request.email, username: request.username, password: request.password,
            displayName: request.displayName, photoUrl: request.photoUrl, phoneNumber: request.phoneNumber,
            customAttributes: request.customAttributes)
        let deletions = try AccountChecks.deletions(
            AccountChecks.attributes(request.deleteAttributes, ofProviders: request.deleteProviders),
            given: [
                .email: form.email, .password: form.password, .username: form.username, .displayName: form.displayName,
                .photoUrl: form.photoUrl,
            ])
        let deletedProviders = Set(request.deleteProviders ?? [])
        if form.phoneNumber != nil, deletedProviders.contains("phone") {
            throw AuthError.invalidFields([
                FieldProblem("deleteProviders", "INVALID_REQ_TYPE", "phoneNumber is to be set and deleted at once")
            ])
        }
        let uid = request.uid
        let before = try await store.read { rows in
            guard let account = try AccountRows.find(uid, in: rows) else { throw AuthError.userNotFound }
            return account
        }
        let missing = AccountChecks.lostName(form, before, deletions)
        let checked = try await AccountFormPolicy(configuration).check(form, before: before, missing: missing) {
            try await checkAddress($0, replacing: before)
        }
        var change = AccountChange(checked, passwordHash: try await hash(checked.password))
        change.emailVerified = request.emailVerified
        change.disabled = request.disabled
        change.deletions = deletions
        change.deletedProviders = deletedProviders
        change.linked = try linked(request.linkProviderUserInfo, deletedProviders)
        return try await apply(change, of: form, to: uid)
    }

    func revokeUser(_ request: Auth.Users.Revoke) async throws -> Auth.Account {
        try await apply(AccountChange(), to: request.uid, isRevoked: true)
    }

    func deleteUser(_ request: Auth.Users.Delete) async throws -> Empty {
        let uid = request.uid
        _ = try await service.write { [environment] rows in
            guard let account = try AccountRows.find(uid, in: rows) else { throw AuthError.userNotFound }
            try AccountDeletion(account, in: rows).apply(at: environment.now(), in: rows)
        }
        return Empty()
    }

    // MARK: Steps

    /// Throws when another account than `before` has the address.
    private func checkAddress(
        _ address: AccountFormPolicy.Checked, replacing before: AccountRecord?
    ) async throws {
        let now = environment.now()
        let account = AccountChange(address, passwordHash: nil)
            .applied(to: before ?? AccountRecord(uid: "", createdAt: now), now: now)
        try await store.read { rows in try AccountRows.checkNames(of: account, replacing: before, in: rows) }
    }

    /// Applies an administrator's change and ends the sessions that it invalidates, and with them the codes for former
    /// addresses: whose account it is, the administrator has decided. The checks of the form are
    /// repeated: another call may have taken a name while the password was hashed.
    private func apply(
        _ change: AccountChange, of form: AccountForm? = nil, to uid: String, isRevoked: Bool = false
    ) async throws -> Auth.Account {
        return try await service.write { [environment] rows in
            let now = environment.now()
            guard let before = try AccountRows.find(uid, in: rows) else { throw AuthError.userNotFound }
            if let form { try AccountChecks.refuse(AccountChecks.lostName(form, before, change.deletions)) }
            if let linked = change.linked { try Self.check(linked, for: before, in: rows) }
            var account = change.applied(to: before, now: now)
            if isRevoked { account.endTokens(at: now) }
            try AccountRows.checkNames(of: account, replacing: before, in: rows)
            let endsSessions = isRevoked || change.endsSessions(before, account)
            let ended = endsSessions ? try SessionRows.ids(of: uid, in: rows) : []
            let recoveries = endsSessions ? try CodeRows.recoveries(of: uid, in: rows) : []
            AccountRows.put(account, replacing: before, in: rows)
            for id in ended { SessionRows.delete(id, of: uid, in: rows) }
            for code in recoveries { CodeRows.delete(code, in: rows) }
            return account.account
        }.outcome
    }

    /// Throws unless the account may get the identity.
    private static func check(
        _ identity: LinkedIdentity, for account: AccountRecord, in rows: some StoreReading
    ) throws {
        let holder = try AccountRows.find(.identity(provider: identity.provider, uid: identity.uid), in: rows)
        guard holder == nil || holder?.uid == account.uid else { throw AuthError.linkedIdentityHasAccount }
        let others = account.identities.filter { $0.provider == identity.provider && $0.uid != identity.uid }
        guard others.isEmpty else { throw AuthError.accountHasIdentity }
        guard account.identities.count < LinkedIdentity.countMax || holder != nil else {
            throw AuthError.invalidFields([
                FieldProblem(
                    "linkProviderUserInfo", "INVALID_PROVIDER_ID",
                    "An account should have at most \(LinkedIdentity.countMax) identities; unlink one, such as "
                        + "deleteProviders: [\"google.com\"]")
            ])
        }
    }

    /// Throws `AuthError.invalidFields`.
    private func linked(
        _ entry: Auth.Account.Provider?, _ deletedProviders: Set<String>
    ) throws(AuthError) -> LinkedIdentity? {
        guard let entry else { return nil }
        do throws(FieldProblem) {
            let identity = try LinkedIdentity(given: entry, at: "linkProviderUserInfo")
            guard !deletedProviders.contains(identity.provider) else {
                throw FieldProblem(
                    "deleteProviders", "INVALID_REQ_TYPE", "\(identity.provider) is to be linked and unlinked at once")
            }
            return identity
        } catch {
            throw .invalidFields([error])
        }
    }

    private func hash(_ password: Password?) async throws -> PasswordHash? {
        guard let password else { return nil }
        return try await passwords.hash(password, for: .administrators)
    }

    private func accountName(_ request: Auth.Users.Get) throws -> AccountName {
        let policy = AccountFormPolicy(configuration, takesStored: true)
        do {
            var names: [AccountName] = []
            if let uid = request.uid { names.append(.uid(uid)) }
            if let email = request.email { names.append(.email(try policy.email(email))) }
            if let username = request.username { names.append(.username(try policy.username(username))) }
            if let number = request.phoneNumber { names.append(.phoneNumber(try policy.phoneNumber(number))) }
            if let provider = request.provider, let uid = request.providerUid {
                names.append(.identity(provider: provider, uid: uid))
            }
            guard let name = names.first, names.count == 1, (request.provider == nil) == (request.providerUid == nil)
            else {
                throw FieldProblem(
                    "uid", "MISSING_IDENTIFIER",
                    "Give exactly one of uid, email, username, phoneNumber, and provider with providerUid")
            }
            return name
        } catch let problem as FieldProblem {
            throw AuthError.invalidFields([problem])
        }
    }
}

extension AuthMethods {
    /// The page of accounts that a request names. Throws `AuthError.invalidFields`.
    func page(after: String?, limit: Int?) throws(AuthError) -> (after: String?, limit: Int) {
        let limitMax = configuration.limits.usersPageMax
        let limit = limit ?? limitMax
        guard (1...limitMax).contains(limit) else {
            throw .invalidFields([
                FieldProblem("limit", "INVALID_PAGE_SELECTION", "The limit should be from 1 to \(limitMax)")
            ])
        }
        if let after, !UserID.isUid(after) {
            throw .invalidFields([
                FieldProblem(
                    "after", "INVALID_PAGE_SELECTION",
                    "The page should begin after a uid: the `after` of the previous page")
            ])
        }
        return (after, limit)
    }
}
