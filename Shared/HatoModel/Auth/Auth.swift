/// The requests of the auth service: accounts, sessions and the keys that prove them (protocol §4).
public enum Auth {
    /// Every method that only this service has.
    public static let methods: [any RPCRequest.Type] = [
        SignUp.self, SignIn.self, Refresh.self, SignOut.self,
        Sessions.List.self, Sessions.End.self, Sessions.Fork.self,
        Keys.self, Keys.Rotate.self, Keys.Revoke.self,
        Account.Get.self, Account.Update.self, Account.Delete.self,
        Users.Create.self, Users.Get.self, Users.List.self, Users.Update.self, Users.Delete.self, Users.Revoke.self,
        Users.Invite.self,
        Users.Import.self, Users.Export.self,
        Code.Request.self, Code.Check.self, Code.Apply.self, SignInWithCode.self,
        SignInWithProvider.self, SignInMethods.self, Providers.Set.self, Providers.List.self, Providers.Remove.self,
        CustomToken.Create.self, CustomToken.Signers.Set.self, CustomToken.Signers.List.self,
        CustomToken.Signers.Remove.self, SignInWithCustomToken.self,
        SessionCookie.Create.self, SessionCookie.Verify.self,
        Audit.List.self,
        Mail.List.self, Mail.Replay.self, Mail.Drop.self, Mailbox.List.self,
        Settings.Get.self, Settings.Set.self, Follow.self, Unfollow.self, Backup.self,
    ]

    /// The notifications of the service.
    public static let notifications: [any RPCNotification.Type] = [Event.self, Cancelled.self]
}

extension Auth {
    /// A signed-in user: a short-lived ID token for calls, and the refresh token for the next one.
    public struct Session: FieldObject, Hashable {
        public var uid: String
        public var idToken: String
        public var refreshToken: String
        public var expiresIn: Int
        public var isNewUser: Bool

        public static let fields = Fields<Self>(
            blank: Self(uid: "", idToken: "", refreshToken: "", expiresIn: 0, isNewUser: false),
            .required("uid", \.uid, "The id of the user"),
            .required(
                "idToken", \.idToken, "The ID token, a JWT signed with ES256: the `auth` of calls to every service"),
            .required(
                "refreshToken", \.refreshToken,
                """
                The refresh token: `auth.refresh` accepts it once, and repeats a response that was lost. A \
                session ends after 30 days without `auth.refresh`
                """
            ),
            .required("expiresIn", \.expiresIn, "Seconds until `idToken` expires; 3,600 for a new session"),
            .required(
                "isNewUser", \.isNewUser,
                """
                True when this call created the account; false when `auth.signUp` gave credentials to an \
                anonymous account
                """))

        public init(uid: String, idToken: String, refreshToken: String, expiresIn: Int, isNewUser: Bool) {
            self.uid = uid
            self.idToken = idToken
            self.refreshToken = refreshToken
            self.expiresIn = expiresIn
            self.isNewUser = isNewUser
        }

        static let example = Session(
            uid: "q3Vd0lYxkTg7Zb1mNc5RwEaHs2Uf", idToken: "eyJhbGciOiJFUzI1NiIs…", refreshToken: "m4Tn9…",
            expiresIn: 3600, isNewUser: true)
    }
}

extension JSONObject {
    /// Refuses params in which a credential field is missing or null with Firebase's own reason, which forms and the
    /// gateway rely on, instead of the general -32602.
    func requireAuthParameter(_ name: String, reason: String) throws(RPCError) {
        guard isMissing(name) else { return }
        throw RPCError.invalidArgument(name, reason: reason, "\(name) is missing")
    }

    /// The same for a token that is a credential itself (protocol §3).
    func requireToken(_ name: String, reason: String) throws(RPCError) {
        guard isMissing(name) else { return }
        throw RPCError.unauthenticated(reason: reason, "\(name) is missing", at: name)
    }

    private func isMissing(_ name: String) -> Bool { self[name]?.isNull ?? true }
}
