import HatoModel

/// An account as stored: the members visible to its owner, and the hash of its password.
struct AccountRecord: Sendable {
    var uid: String
    var email: String?
    var emailVerified = false
    var username: String?
    var displayName: String?
    var photoUrl: String?
    /// In the form of E.164, without proof: nothing signs in with it.
    var phoneNumber: String?
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
    /// Whether it has signed in with a code of a mail.
    var signsInWithCode = false
    /// Whether it has signed in with a custom token.
    var signsInWithCustomToken = false
    /// The identities of providers that sign in to it, one of each provider at most.
    var identities: [LinkedIdentity] = []
    /// Whether an administrator made or imported it: then it is not deleted for being unused.
    var isManaged = false
    /// `NetworkMark`s of the last networks from which it has signed in, the newest first.
    var networks: [String]?

    init(uid: String, createdAt: Int64) {
        self.uid = uid
        self.createdAt = createdAt
        validSince = createdAt / 1000
    }

    /// Refuses all ID tokens that were issued before a change at `now` (milliseconds), those of the same second too,
    /// and forgets the networks: one of them may be that of a thief.
    mutating func endTokens(at now: Int64) {
        validSince = max(validSince, now / 1000) + 1
        networks = nil
    }

    /// Whether it has nothing to be found by but its uid, and no sign-in but its refresh token (spec auth §2).
    var isAnonymous: Bool {
        email == nil && username == nil && phoneNumber == nil && identities.isEmpty && !signsInWithCustomToken
    }

    /// Whether its owner has a credential, settings aside: a code does for a proved address.
    ///
    /// - Parameter byMail: whether codes are mailed.
    func hasCredential(byMail: Bool) -> Bool {
        signsInWithPassword || !identities.isEmpty || signsInWithCustomToken || (byMail && emailVerified)
    }

    /// Whether its password signs in: administrators may set one before there is a name to sign in with.
    var signsInWithPassword: Bool { passwordHash != nil && !signInNames.isEmpty }

    /// What its owner may sign in with instead of the uid.
    var signInNames: [String] { [email, username].compactMap { $0 } }

    /// The result of `auth.account.get` and other methods: never with the hash.
    var account: Auth.Account {
        var account = Auth.Account(uid: uid, createdAt: createdAt)
        account.email = email
        account.emailVerified = emailVerified
        account.username = username
        account.displayName = displayName
        account.photoUrl = photoUrl
        account.phoneNumber = phoneNumber
        account.disabled = disabled
        account.lastLoginAt = lastLoginAt
        account.lastRefreshAt = lastRefreshAt
        account.passwordUpdatedAt = passwordUpdatedAt
        account.validSince = validSince
        account.customAttributes = customAttributes
        account.initialEmail = initialEmail
        account.emailLinkSignin = signsInWithCode ? true : nil
        account.customAuth = signsInWithCustomToken ? true : nil
        if passwordHash != nil || (signsInWithCode && email != nil), let name = email ?? username {
            var provider = Auth.Account.Provider(providerId: "password", rawId: name)
            provider.email = email
            provider.displayName = displayName
            provider.photoUrl = photoUrl
            account.providerUserInfo = [provider]
        }
        if let phoneNumber {
            account.providerUserInfo.append(Auth.Account.Provider(providerId: "phone", rawId: phoneNumber))
        }
        account.providerUserInfo += identities.map(\.info)
        return account
    }
}

extension AccountRecord: FieldObject {
    /// Absent in the row of an account without one.
    private var storedIdentities: [LinkedIdentity]? {
        get { identities.isEmpty ? nil : identities }
        set { identities = newValue ?? [] }
    }

    static let fields = Fields<Self>(
        blank: Self(uid: "", createdAt: 0),
        .required("uid", \.uid),
        .time("createdAt", \.createdAt),
        .optional("email", \.email),
        .flag("emailVerified", \.emailVerified),
        .optional("username", \.username),
        .optional("displayName", \.displayName),
        .optional("photoUrl", \.photoUrl),
        .optional("phoneNumber", \.phoneNumber),
        .optional("passwordHash", \.passwordHash),
        .optionalTime("passwordUpdatedAt", \.passwordUpdatedAt),
        .optionalTime("lastLoginAt", \.lastLoginAt),
        .optionalTime("lastRefreshAt", \.lastRefreshAt),
        .seconds("validSince", \.validSince),
        .flag("disabled", \.disabled),
        .optional("customAttributes", \.customAttributes),
        .optional("initialEmail", \.initialEmail),
        .flag("emailLinkSignin", \.signsInWithCode),
        .flag("customAuth", \.signsInWithCustomToken),
        .optional("identities", \.storedIdentities),
        .flag("managed", \.isManaged),
        .optional("networks", \.networks))

    /// Throws `RecordError`.
    init(_ bytes: [UInt8]) throws(RecordError) {
        self = try RecordCodec.decode(Self.self, bytes, of: "account", unknown: .rejected)
    }

    var bytes: [UInt8] { RecordCodec.encode(self) }
}

extension PasswordHash: FieldValue {
    static var schema: JSONObject { String.schema }

    init(json: JSONValue, unknown: UnknownFields) throws(FieldError) {
        guard let hash = PasswordHash(try String(json: json, unknown: unknown)) else {
            throw FieldError(ArgumentError(reason: "invalid_hash", "A hash has the form of PHC"))
        }
        self = hash
    }

    var json: JSONValue { .string(text) }
}
