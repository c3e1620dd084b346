import HatoModel

/// Decides what the rows of an import become, and which are refused (spec auth §7). Pure.
struct UserImportPolicy: Sendable {
    typealias Row = Auth.Users.Row
    typealias RowError = Auth.Users.Import.RowError

    /// A row that is right in itself; whether its account may be written is decided with the store.
    struct Checked: Sendable {
        var index: Int
        var uid: String
        var row: Row
        var form: AccountFormPolicy.Checked
        var hash: PasswordHash?
        /// Nil: the row says nothing of them.
        var identities: [LinkedIdentity]?
    }

    /// Times of other clocks may be so much later than this one.
    static let clockLeewayMilliseconds: Int64 = 86_400_000

    /// Milliseconds since 1970.
    private let latest: Int64
    private let forms: AccountFormPolicy
    private let hashes: HashImportPolicy

    /// Throws `AuthError.invalidFields` for a request that is wrong as a whole.
    ///
    /// - Parameter now: in milliseconds since 1970.
    init(_ request: Auth.Users.Import, _ configuration: AuthConfiguration, now: Int64) throws(AuthError) {
        latest = now + Self.clockLeewayMilliseconds
        let countMax = configuration.limits.usersPageMax
        guard !request.users.isEmpty else {
            throw .invalidFields([FieldProblem("users", "MISSING_USER_ACCOUNT", "There are no users")])
        }
        guard request.users.count <= countMax else {
            throw .invalidFields([
                FieldProblem(
                    "users", "MAXIMUM_USER_COUNT_EXCEEDED",
                    "There should be at most \(countMax) users, not \(request.users.count)")
            ])
        }
        forms = AccountFormPolicy(configuration, takesStored: true)
        hashes = try HashImportPolicy(
            request, configuration.pepper, memoryBytesMax: configuration.importedHashMemoryBytesMax)
    }

    /// Throws `AuthError.invalidFields` when two rows have the same uid or name.
    func check(_ rows: [Row]) throws(AuthError) -> (rows: [Checked], errors: [RowError]) {
        var checked: [Checked] = []
        var errors: [RowError] = []
        for (index, row) in rows.enumerated() {
            do throws(FieldProblem) {
                checked.append(try check(row, index))
            } catch {
                errors.append(RowError(index, row.uid, error))
            }
        }
        do throws(FieldProblem) {
            try Self.refuseRepeated(rows.map(\.uid), "DUPLICATE_LOCAL_ID")
            try Self.refuseRepeated(checked.map(\.form.email), "DUPLICATE_EMAIL")
            try Self.refuseRepeated(checked.map(\.form.username), "DUPLICATE_USERNAME")
            try Self.refuseRepeated(checked.map(\.form.phoneNumber), "DUPLICATE_PHONE_NUMBER")
            let identities = checked.flatMap { $0.identities ?? [] }
            try Self.refuseRepeated(identities.map { "\($0.uid) of \($0.provider)" }, "DUPLICATE_RAW_ID")
        } catch {
            throw .invalidFields([error])
        }
        return (checked, errors)
    }

    private func check(_ row: Row, _ index: Int) throws(FieldProblem) -> Checked {
        guard let uid = row.uid else { throw FieldProblem("uid", "MISSING_LOCAL_ID", "uid is missing") }
        if let problem = UserID.problem(with: uid) { throw problem }
        let form = AccountForm(
            email: row.email, username: row.username, displayName: row.displayName, photoUrl: row.photoUrl,
            phoneNumber: row.phoneNumber, customAttributes: row.customAttributes)
        let checked: AccountFormPolicy.Checked
        do throws(AuthError) {
            checked = try forms.check(form)
        } catch {
            guard case .invalidFields(let problems) = error, let first = problems.first else {
                throw FieldProblem("uid", "INVALID_REQ_TYPE", "The row cannot be read")
            }
            throw first
        }
        try checkTime("createdAt", row.createdAt)
        try checkTime("lastLoginAt", row.lastLoginAt)
        try checkTime("passwordUpdatedAt", row.passwordUpdatedAt)
        if let initialEmail = row.initialEmail { _ = try forms.email(initialEmail) }
        return Checked(
            index: index, uid: uid, row: row, form: checked, hash: try hashes.hash(of: row),
            identities: try row.providerUserInfo.map(Self.identities))
    }

    private static func identities(
        _ entries: [Auth.Account.Provider]
    ) throws(FieldProblem) -> [LinkedIdentity] {
        let entries = entries.filter { $0.providerId != "password" && $0.providerId != "phone" }
        guard entries.count <= LinkedIdentity.countMax, Set(entries.map(\.providerId)).count == entries.count else {
            throw FieldProblem(
                "providerUserInfo", "INVALID_PROVIDER_ID",
                "There should be one identity of each provider, at most \(LinkedIdentity.countMax)")
        }
        return try entries.map { (entry) throws(FieldProblem) in
            try LinkedIdentity(given: entry, at: "providerUserInfo")
        }
    }

    private func checkTime(_ name: String, _ value: Int64?) throws(FieldProblem) {
        guard let value, value < 0 || value > latest else { return }
        throw FieldProblem(
            name, "INVALID_TIME",
            "\(name) should be in milliseconds since 1970, such as 1700000000000, and not in the future")
    }

    private static func refuseRepeated(_ names: [String?], _ reason: String) throws(FieldProblem) {
        var seen: Set<String> = []
        for case let name? in names where !seen.insert(name).inserted {
            throw FieldProblem("users", reason, "\(name) is in two rows")
        }
    }
}

extension UserImportPolicy.Checked {
    /// The account that the row says. What a row does not say stays as it is in the account that is replaced.
    ///
    /// - Parameter now: in milliseconds.
    func record(replacing before: AccountRecord?, now: Int64) -> AccountRecord {
        var account = AccountRecord(uid: uid, createdAt: row.createdAt ?? before?.createdAt ?? now)
        account.email = form.email
        account.emailVerified = row.emailVerified == true && form.email != nil
        account.username = form.username
        account.displayName = form.displayName
        account.photoUrl = form.photoUrl
        account.phoneNumber = form.phoneNumber
        account.customAttributes = form.customAttributes == "{}" ? nil : form.customAttributes
        account.disabled = row.disabled ?? before?.disabled ?? false
        account.passwordHash = hash
        if hash != nil {
            account.passwordUpdatedAt = row.passwordUpdatedAt ?? before?.passwordUpdatedAt ?? account.createdAt
        }
        account.lastLoginAt = row.lastLoginAt ?? before?.lastLoginAt
        account.lastRefreshAt = before?.lastRefreshAt
        account.signsInWithCode = form.email != nil && (row.emailLinkSignin ?? before?.signsInWithCode ?? false)
        account.signsInWithCustomToken = row.customAuth ?? before?.signsInWithCustomToken ?? false
        account.identities = identities ?? before?.identities ?? []
        account.initialEmail = row.initialEmail ?? before?.initialEmail ?? form.email
        // Not the time of the row: tokens of a deleted account that had the uid must not be valid again.
        account.validSince = before?.validSince ?? now / 1000
        account.networks = before?.networks
        account.isManaged = before?.isManaged ?? true
        return account
    }
}

extension Auth.Users.Import.RowError {
    init(_ index: Int, _ uid: String?, _ problem: FieldProblem) {
        self.init(
            index: index, uid: uid, parameter: problem.parameter, reason: problem.reason, message: problem.message)
    }
}
