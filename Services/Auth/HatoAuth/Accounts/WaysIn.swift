import HatoModel

/// Decides whether the owner of an account can sign in again, as the settings are now: a way that is off is none.
struct WaysIn: Sendable {
    private let allowsPassword: Bool
    private let mailsCodes: Bool
    private let providers: Set<String>

    init(_ service: AuthService) {
        let configuration = service.configuration
        self.init(
            allowsPassword: configuration.allowsPasswordSignIn,
            // A code also sets a password.
            mailsCodes: (configuration.allowsCodeSignIn || configuration.allowsPasswordSignIn) && service.mail != nil,
            providers: service.providers.ids)
    }

    /// - Parameters:
    ///   - mailsCodes: Whether people sign in with a code of a mail, or set a password, and mails are sent.
    ///   - providers: The ids of those that are set.
    init(allowsPassword: Bool, mailsCodes: Bool, providers: [String]) {
        self.allowsPassword = allowsPassword
        self.mailsCodes = mailsCodes
        self.providers = Set(providers)
    }

    /// Whether there is one. An address that was never confirmed may be that of another person.
    func isLeft(_ account: AccountRecord) -> Bool {
        (allowsPassword && account.signsInWithPassword) || (mailsCodes && account.emailVerified)
            || account.signsInWithCustomToken || account.identities.contains { providers.contains($0.provider) }
    }

    /// Throws `AuthError.lastSignInMethod` when a change by the owner takes something away to sign in with, and leaves
    /// none.
    func check(_ account: AccountRecord, replacing before: AccountRecord) throws(AuthError) {
        let takesAway =
            (before.passwordHash != nil && account.passwordHash == nil)
            || (before.email != nil && account.email == nil) || account.identities.count < before.identities.count
        guard takesAway, !isLeft(account) else { return }
        throw .lastSignInMethod
    }
}
