import HatoModel

/// An identity at a provider that signs in to an account; the pair of provider and id belongs to one account.
struct LinkedIdentity: Sendable, Hashable {
    /// The id of the provider.
    var provider: String
    /// The id of the user at the provider.
    var uid: String
    /// As the provider says, and so with the members below.
    var email: String?
    var displayName: String?
    var photoUrl: String?

    init(provider: String, uid: String) {
        self.provider = provider
        self.uid = uid
    }

    /// As `auth.account.get` shows it.
    var info: Auth.Account.Provider {
        var info = Auth.Account.Provider(providerId: provider, rawId: uid)
        info.email = email
        info.displayName = displayName
        info.photoUrl = photoUrl
        return info
    }
}

extension LinkedIdentity: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(provider: "", uid: ""),
        .required("provider", \.provider),
        .required("uid", \.uid),
        .optional("email", \.email),
        .optional("displayName", \.displayName),
        .optional("photoUrl", \.photoUrl))
}
