import HatoModel

/// An account as stored: the members visible to its owner, and the hash of its password.
struct AccountRecord: Sendable {
    var uid: String
    var email: String?
    var emailVerified = false
    var username: String?
    var displayName: String?
    var photoUrl: String?
    var passwordHash: PasswordHash?
    var passwordUpdatedAt: Int64?
    var createdAt: Int64
    var lastLoginAt: Int64?
    var lastRefreshAt: Int64?
    /// Seconds since 1970: ID tokens issued before are refused.
    var validSince: Int64
    var disabled = false
    var customAttributes: String?
    var initialEmail: String?

    init(uid: String, createdAt: Int64) {
        self.uid = uid
        self.createdAt = createdAt
        validSince = createdAt / 1000
    }

    /// Whether its refresh token is the only credential.
    var isAnonymous: Bool { passwordHash == nil && email == nil && username == nil }

    /// The result of `auth.account.get` and other methods: never with the hash.
    var account: Auth.Account {
        var account = Auth.Account(uid: uid, createdAt: createdAt)
        account.email = email
        account.emailVerified = emailVerified
        account.username = username
        account.displayName = displayName
        account.photoUrl = photoUrl
        account.disabled = disabled
        account.lastLoginAt = lastLoginAt
        account.lastRefreshAt = lastRefreshAt
        account.passwordUpdatedAt = passwordUpdatedAt
        account.validSince = validSince
        account.customAttributes = customAttributes
        account.initialEmail = initialEmail
        if passwordHash != nil, let name = email ?? username {
            var provider = Auth.Account.Provider(providerId: "password", rawId: name)
            provider.email = email
            provider.displayName = displayName
            provider.photoUrl = photoUrl
            account.providerUserInfo = [provider]
        }
        return account
    }
}

extension AccountRecord {
    init(_ bytes: [UInt8]) throws {
        var reader = try RecordReader("account", bytes)
        self.init(uid: try reader.text("uid"), createdAt: try reader.time("createdAt"))
        email = try reader.optionalText("email")
        emailVerified = try reader.flag("emailVerified")
        username = try reader.optionalText("username")
        displayName = try reader.optionalText("displayName")
        photoUrl = try reader.optionalText("photoUrl")
        if let text = try reader.optionalText("passwordHash") {
            guard let hash = PasswordHash(text) else { throw reader.failure("passwordHash") }
            passwordHash = hash
        }
        passwordUpdatedAt = try reader.optionalTime("passwordUpdatedAt")
        lastLoginAt = try reader.optionalTime("lastLoginAt")
        lastRefreshAt = try reader.optionalTime("lastRefreshAt")
        validSince = try reader.seconds("validSince")
        disabled = try reader.flag("disabled")
        customAttributes = try reader.optionalText("customAttributes")
        initialEmail = try reader.optionalText("initialEmail")
        try reader.end()
    }

    var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.put("uid", uid)
        writer.put("createdAt", createdAt)
        writer.put("email", email)
        writer.put("emailVerified", emailVerified)
        writer.put("username", username)
        writer.put("displayName", displayName)
        writer.put("photoUrl", photoUrl)
        writer.put("passwordHash", passwordHash?.text)
        writer.put("passwordUpdatedAt", passwordUpdatedAt)
        writer.put("lastLoginAt", lastLoginAt)
        writer.put("lastRefreshAt", lastRefreshAt)
        writer.put("validSince", validSince)
        writer.put("disabled", disabled)
        writer.put("customAttributes", customAttributes)
        writer.put("initialEmail", initialEmail)
        return writer.bytes
    }
}
