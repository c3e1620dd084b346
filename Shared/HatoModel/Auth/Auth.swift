/// The requests of the auth service: accounts, sessions and the keys that prove them (protocol §4).
public enum Auth {
    /// Every method that only this service has.
    public static let methods: [any RPCRequest.Type] = [
        SignUp.self, SignIn.self, Refresh.self, SignOut.self,
        Keys.self, Keys.Rotate.self,
        Account.Get.self, Account.Update.self, Account.Delete.self,
        Users.Create.self, Users.Get.self, Users.List.self, Users.Update.self, Users.Delete.self, Users.Revoke.self,
        Backup.self,
    ]

    /// The notifications of the service.
    public static let notifications: [any RPCNotification.Type] = []
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
            .required("idToken", \.idToken, "A JWT (ES256); goes into `auth` of calls to every service"),
            .required(
                "refreshToken", \.refreshToken,
                "Good once: `auth.refresh` exchanges it. Shown again within 30 seconds it brings the same successor, "
                    + "later it ends the session; unused for 30 days it ends"
            ),
            .required("expiresIn", \.expiresIn, "Seconds until `idToken` ends"),
            .required("isNewUser", \.isNewUser, "Whether this call made the account: only `auth.signUp` does"))

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
        guard let value = self[name], !value.isNull else {
            throw RPCError.invalidArgument(name, reason: reason, "\(name) is missing")
        }
    }
}
