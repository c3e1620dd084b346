import HatoModel
import HatoStorage

/// The former addresses of accounts, and the codes that bring them back (`recoverEmail`).
struct FormerAddresses: Sendable {
    /// Of one account at a time.
    private static let codesMax = 10

    private let service: AuthService

    init(_ service: AuthService) { self.service = service }

    /// Writes a code that brings the address of `before` back, and its mail to that address, if `account` has another
    /// one. It reads first and writes after. Throws `AuthError.mailQueueFull`.
    ///
    /// An address that was never verified gets none: it may be that of another person. Each address of the account has
    /// its own code, and using one ends the later ones: a thief of the account that changes the address twice gets one
    /// that is of no use once the owner has used the first.
    ///
    /// - Parameter locale: of the mail; nil: that of the service.
    func issueCode(
        of before: AccountRecord, to account: AccountRecord, locale: String? = nil, in rows: AuthTransaction
    ) throws {
        guard service.mail != nil, before.emailVerified, let former = before.email, account.email != former else {
            return
        }
        let draft = service.newCode(.recoverEmail, locale: locale ?? service.configuration.mailLocale, continueUrl: nil)
        var queue = try MailQueueChange(service.configuration.limits, in: rows)
        let others = try live(of: before.uid, at: draft.code.createdAt, in: rows)
        guard others.count < Self.codesMax, !others.contains(where: { $0.to == former }) else { return }
        _ = try draft.issue(to: CodeSubject.Resolved(to: former, account: account), mailed: true, &queue, in: rows)
    }

    private func live(of uid: String, at now: Int64, in rows: some StoreReading) throws -> [CodeRecord] {
        try CodeRows.recoveries(of: uid, in: rows).filter { $0.expiresAt > now }
    }

    /// Throws where an account gets an e-mail address without proof, in place of one that was proved: a code
    /// (`changeEmail`) must prove it first. Also while a former address may be brought back: otherwise its owner could
    /// give the account the address of another person, wait until that person uses it, and take it back with all that
    /// is in it.
    func requireProof(of account: AccountRecord, replacing before: AccountRecord, in rows: some StoreReading) throws {
        guard let email = account.email, email != before.email else { return }
        let isVerified = before.email != nil && before.emailVerified
        let isRefused = service.mail != nil && isVerified
        guard try !isRefused && live(of: before.uid, at: service.environment.now(), in: rows).isEmpty else {
            throw AuthError.emailNeedsCode
        }
    }

    /// The codes for former addresses that end when a code is used.
    ///
    /// One that brings an address back ends the later ones: theirs are the addresses of a thief. The earlier ones stay.
    /// One for an address that the account has, but that was not proved before, may give it another owner, who must not
    /// lose it to the former one.
    func ended(
        by code: CodeRecord, of before: AccountRecord, in rows: some StoreReading
    ) throws -> [CodeRecord] {
        let all = try CodeRows.recoveries(of: before.uid, in: rows)
        switch code.type {
        case .recoverEmail: return all.filter { $0.id != code.id && $0.createdAt >= code.createdAt }
        case .changeEmail: return all.filter { $0.to == code.to }
        case .passwordReset, .signIn: return before.email == nil || before.emailVerified ? [] : all
        case .verifyEmail, .invite, .signUp: return []
        }
    }
}
