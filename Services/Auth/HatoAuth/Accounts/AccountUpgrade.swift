import HatoModel
import HatoStorage

/// The reads of an account that gets its first password by `auth.signUp` with `idToken`: the same before the password
/// is hashed, in the transaction, and in a dry run.
struct AccountUpgrade: Sendable {
    private let service: AuthService
    private let user: Caller.User

    init(_ service: AuthService, of user: Caller.User) {
        self.service = service
        self.user = user
    }

    /// The account before. Throws unless it may get a password: one that signs in with a password changes it with
    /// `auth.account.update`, and one with another way to sign in must have used it recently.
    func account(in rows: some StoreReading) throws -> AccountRecord {
        let account = try AccountChecks.ownAccount(user, in: rows)
        guard !account.signsInWithPassword else { throw AuthError.hasCredentials }
        try AccountChecks.requireRecentSignIn(user, account, service, now: service.environment.now())
        _ = try service.ownSession(of: user, among: try SessionRows.ids(of: account.uid, in: rows))
        return account
    }

    /// Throws unless the account may have its new names.
    func checkNames(
        of account: AccountRecord, replacing before: AccountRecord, in rows: some StoreReading
    ) throws {
        try AccountChecks.checkOwnNames(of: account, replacing: before, service, in: rows)
    }
}
