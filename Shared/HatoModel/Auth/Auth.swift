/// What can be said to the auth service: accounts, sessions and the keys that prove them (protocol §4).
public enum Auth {
    /// Every method of the service that is its own.
    public static let methods: [any RPCRequest.Type] = [
        SignUp.self, SignIn.self, Refresh.self, SignOut.self,
        Keys.self, Keys.Rotate.self,
        Account.Get.self, Account.Update.self, Account.Delete.self,
        Users.Create.self, Users.Get.self, Users.List.self, Users.Update.self, Users.Delete.self, Users.Revoke.self,
        Backup.self,
    ]

    /// What the service sends unasked.
    public static let notifications: [any RPCNotification.Type] = []
}

extension Auth {
    /// A user who is signed in: a short-lived ID token for calls, and the refresh token that brings the next one.
    public struct Session: Codable, Sendable, Hashable {
        public var uid: String
        /// A JWT; goes into `auth` of calls to every service.
        public var idToken: String
        /// Good once: `auth.refresh` answers with its successor.
        public var refreshToken: String
        /// Seconds until `idToken` ends.
        public var expiresIn: Int
        /// Whether this call made the account.
        public var isNewUser: Bool

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
    /// Refuses params in which a credential field is missing or null by Firebase's own reason, which forms and the
    /// gateway know, instead of the general -32602.
    func requireAuthParameter(_ name: String, reason: String) throws {
        guard let value = self[name], !value.isNull else {
            throw RPCError.invalidArgument(name, reason: reason, "\(name) is missing")
        }
    }
}
