import HatoModel

/// A validated change of an account, with its password hashed: what a transaction applies.
struct AccountChange: Sendable {
    var email: String?
    var emailVerified: Bool?
    var username: String?
    var displayName: String?
    var photoUrl: String?
    var phoneNumber: String?
    var passwordHash: PasswordHash?
    var customAttributes: String?
    var disabled: Bool?
    var deletions: Set<Auth.AccountAttribute> = []
    /// The ids of providers whose identities no longer sign in; `phone`: the account has no phone number any more.
    var deletedProviders: Set<String> = []
    /// An identity that an administrator links.
    var linked: LinkedIdentity?
    /// Whether no identity of any provider signs in any more.
    var deletesIdentities = false

    init(_ form: AccountFormPolicy.Checked, passwordHash: PasswordHash?) {
        email = form.email
        username = form.username
        displayName = form.displayName
        photoUrl = form.photoUrl
        phoneNumber = form.phoneNumber
        customAttributes = form.customAttributes
        self.passwordHash = passwordHash
    }

    init() {}

    /// The account after the change, at `now` (milliseconds).
    func applied(to before: AccountRecord, now: Int64) -> AccountRecord {
        var account = before
        set(&account)
        delete(&account)
        if account.email != before.email {
            account.emailVerified = emailVerified ?? false
            account.initialEmail = account.initialEmail ?? account.email
        } else if let emailVerified {
            account.emailVerified = emailVerified && account.email != nil
        }
        // The password goes with the last name; one that an administrator sets before there is a name stays.
        if !before.signInNames.isEmpty, account.signInNames.isEmpty { account.passwordHash = nil }
        if account.email == nil { account.signsInWithCode = false }
        if passwordHash != nil, account.passwordHash != nil { account.passwordUpdatedAt = now }
        if account.passwordHash == nil { account.passwordUpdatedAt = nil }
        if endsSessions(before, account) { account.endTokens(at: now) }
        return account
    }

    /// The same for an account that is made now: there is no token yet that could end.
    func applied(toNew blank: AccountRecord, now: Int64) -> AccountRecord {
        var account = applied(to: blank, now: now)
        account.validSince = blank.validSince
        return account
    }

    /// Whether signed-in clients must present a credential again. The sessions of a disabled account stay, though
    /// unusable, so that their refreshes fail with the reason (spec auth §5); they end when the account is enabled
    /// again.
    func endsSessions(_ before: AccountRecord, _ after: AccountRecord) -> Bool {
        let isPasswordChanged = passwordHash != nil || (before.passwordHash != nil && after.passwordHash == nil)
        return isPasswordChanged || before.email != after.email || (before.disabled && !after.disabled)
    }

    private func set(_ account: inout AccountRecord) {
        if let email { account.email = email }
        if let username { account.username = username }
        if let displayName { account.displayName = displayName }
        if let photoUrl { account.photoUrl = photoUrl }
        if let phoneNumber { account.phoneNumber = phoneNumber }
        if let passwordHash { account.passwordHash = passwordHash }
        if let customAttributes { account.customAttributes = customAttributes == "{}" ? nil : customAttributes }
        if let disabled { account.disabled = disabled }
    }

    private func delete(_ account: inout AccountRecord) {
        if deletedProviders.contains("phone") { account.phoneNumber = nil }
        account.identities.removeAll { deletesIdentities || deletedProviders.contains($0.provider) }
        if let linked {
            account.identities.removeAll { $0.provider == linked.provider }
            account.identities.append(linked)
        }
        for attribute in deletions {
            switch attribute {
            case .email: account.email = nil
            case .password: account.passwordHash = nil
            case .username: account.username = nil
            case .displayName: account.displayName = nil
            case .photoUrl: account.photoUrl = nil
            }
        }
    }
}
