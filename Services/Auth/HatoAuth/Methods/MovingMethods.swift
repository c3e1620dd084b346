import HatoModel
import HatoRPC
import HatoStorage

/// `auth.users.import` and `auth.users.export`: accounts with the hashes of their passwords, for administrators.
struct MovingMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Users.Import.self, in: &router) { methods, request, _ in try await methods.importUsers(request) }
        handle(Auth.Users.Export.self, in: &router) { methods, request, _ in try await methods.exportUsers(request) }
    }

    func importUsers(_ request: Auth.Users.Import) async throws -> Auth.Users.Import.Result {
        let checked = try UserImportPolicy(request, configuration, now: environment.now()).check(request.users)
        let allowsOverwrite = request.allowOverwrite ?? false
        let plan: Plan
        if request.dryRun == true {
            plan = try await store.read { [environment] in
                try Plan(checked.rows, allowsOverwrite, now: environment.now(), in: $0)
            }
        } else {
            plan = try await service.write { [environment] rows in
                let plan = try Plan(checked.rows, allowsOverwrite, now: environment.now(), in: rows)
                plan.apply(in: rows)
                return plan
            }.outcome
        }
        return Auth.Users.Import.Result(
            imported: plan.changes.count + plan.sameCount,
            errors: (checked.errors + plan.errors).sorted { $0.index < $1.index })
    }

    func exportUsers(_ request: Auth.Users.Export) async throws -> Auth.Users.Export.Result {
        let (after, limit) = try page(after: request.after, limit: request.limit)
        return try await store.read { rows in
            let page = try AccountRows.page(after: after, limit: limit, in: rows)
            return Auth.Users.Export.Result(
                users: page.accounts.map(\.row), after: page.hasMore ? page.accounts.last?.uid : nil)
        }
    }

    /// What a transaction writes for the rows of an import.
    private struct Plan: Sendable {
        struct Change: Sendable {
            var account: AccountRecord
            var before: AccountRecord?
            var endedSessions: [[UInt8]]
            var endedCodes: [CodeRecord]
        }

        private(set) var changes: [Change] = []
        /// Rows whose accounts are so already.
        private(set) var sameCount = 0
        private(set) var errors: [Auth.Users.Import.RowError] = []

        init(
            _ checked: [UserImportPolicy.Checked], _ allowsOverwrite: Bool, now: Int64, in rows: some StoreReading
        ) throws {
            for row in checked {
                let before = try AccountRows.find(row.uid, in: rows)
                var account = row.record(replacing: before, now: now)
                if before == nil {
                    account.validSince = try AccountRows.newAccount(row.uid, at: now, in: rows).validSince
                }
                if let before, before.bytes == account.bytes {
                    sameCount += 1
                    continue
                }
                do {
                    if before != nil, !allowsOverwrite { throw AuthError.uidExists }
                    try AccountRows.checkNames(of: account, replacing: before, in: rows)
                } catch let error as AuthError {
                    errors.append(.init(row.index, row.uid, Self.problem(error)))
                    continue
                }
                let validSince = account.validSince
                let ended = try Self.endedSessions(before, &account, now: now, in: rows)
                // Those for former addresses: whose account it is, the administrator has decided.
                let isAnother = before == nil || account.validSince != validSince
                let codes = isAnother ? try CodeRows.recoveries(of: account.uid, in: rows) : []
                changes.append(
                    Change(account: account, before: before, endedSessions: ended, endedCodes: codes))
            }
        }

        func apply(in rows: AuthTransaction) {
            for change in changes {
                AccountRows.put(change.account, replacing: change.before, in: rows)
                for id in change.endedSessions { SessionRows.delete(id, of: change.account.uid, in: rows) }
                for code in change.endedCodes { CodeRows.delete(code, in: rows) }
            }
        }

        /// The sessions of a replaced account, if the change ends them.
        private static func endedSessions(
            _ before: AccountRecord?, _ account: inout AccountRecord, now: Int64, in rows: some StoreReading
        ) throws -> [[UInt8]] {
            guard let before else { return [] }
            let isPasswordChanged = before.passwordHash?.text != account.passwordHash?.text
            guard isPasswordChanged || before.email != account.email || (before.disabled && !account.disabled) else {
                return []
            }
            account.endTokens(at: now)
            return try SessionRows.ids(of: account.uid, in: rows)
        }

        private static func problem(_ error: AuthError) -> FieldProblem {
            switch error {
            case .emailExists: FieldProblem("email", "EMAIL_EXISTS", "Another account has this e-mail address")
            case .usernameExists: FieldProblem("username", "USERNAME_EXISTS", "Another account has this username")
            case .phoneNumberExists:
                FieldProblem("phoneNumber", "PHONE_NUMBER_EXISTS", "Another account has this phone number")
            case .identityHasAccount:
                FieldProblem(
                    "providerUserInfo", "FEDERATED_USER_ID_ALREADY_LINKED",
                    "Another account has one of these identities of providers")
            default:
                FieldProblem(
                    "uid", "DUPLICATE_LOCAL_ID",
                    "uid belongs to an existing account, which allowOverwrite would replace")
            }
        }
    }
}

extension AccountRecord {
    /// As `auth.users.import` reads it.
    fileprivate var row: Auth.Users.Row {
        var row = Auth.Users.Row(uid: uid)
        row.email = email
        row.emailVerified = emailVerified ? true : nil
        row.username = username
        row.displayName = displayName
        row.photoUrl = photoUrl
        row.phoneNumber = phoneNumber
        row.disabled = disabled
        row.customAttributes = customAttributes
        row.createdAt = createdAt
        row.lastLoginAt = lastLoginAt
        row.passwordUpdatedAt = passwordUpdatedAt
        row.initialEmail = initialEmail
        row.emailLinkSignin = signsInWithCode ? true : nil
        row.customAuth = signsInWithCustomToken ? true : nil
        row.providerUserInfo = identities.isEmpty ? nil : identities.map(\.info)
        row.passwordHash = passwordHash?.text
        return row
    }
}
