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

    /// Of an account.
    static let countMax = 50
    /// Of each text besides the ids.
    private static let textBytesMax = 2_048

    /// An identity that an administrator gives.
    ///
    /// - Parameter parameter: Where, for the error.
    init(given entry: Auth.Account.Provider, at parameter: String) throws(FieldProblem) {
        let texts = [entry.email, entry.displayName, entry.photoUrl].compactMap { $0 }
        guard ProviderForm.isProvider(entry.providerId), ProviderTokenVerifier.isUid(entry.rawId),
            texts.allSatisfy({ $0.utf8.count <= Self.textBytesMax && !$0.utf8.contains(0) })
        else {
            throw FieldProblem(
                parameter, "INVALID_PROVIDER_ID",
                "providerId should be like google.com, and rawId have 1 to \(ProviderTokenVerifier.uidBytesMax) "
                    + "bytes without control characters")
        }
        self.init(provider: entry.providerId, uid: entry.rawId)
        (email, displayName, photoUrl) = (entry.email, entry.displayName, entry.photoUrl)
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
