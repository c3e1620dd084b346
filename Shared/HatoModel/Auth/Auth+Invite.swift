extension Auth.Users {
    /// An account that was invited before and has no password yet gets a newer code.
    public struct Invite: RPCRequest {
        public static let method = "auth.users.invite"
        public static let summary = "Makes an account without a password, and sends a mail with a code that sets one"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var request = Self(email: "masuo@example.com")
            request.displayName = "マスオさん"
            request.locale = "ja"
            return RPCExample(request, Result(uid: Auth.Account.example.uid, email: "masuo@example.com"))
        }

        public var email: String
        public var uid: String?
        public var displayName: String?
        public var locale: String?
        public var continueUrl: String?
        public var returnCode: Bool?

        public static let fields = Fields<Self>(
            blank: Self(email: ""),
            .required("email", \.email, "The e-mail address, at most 254 bytes"),
            .optional(
                "uid", \.uid, "The id of the user, as in `auth.users.create`; a random one when absent",
                example: "masuo"),
            .displayName(\.displayName),
            .mailLocale(\.locale),
            .continueUrl(\.continueUrl),
            .optional("returnCode", \.returnCode, "True: sends no mail and returns the code", example: true))

        public init(email: String) { self.email = email }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("email", reason: "MISSING_EMAIL")
            return try decodeFields(params)
        }

        public struct Result: FieldObject, Hashable {
            public var uid: String
            public var email: String
            public var code: String?
            public var link: String?

            public static let fields = Fields<Self>(
                blank: Self(uid: "", email: ""),
                .required("uid", \.uid, "The id of the user"),
                .required("email", \.email, "The address that gets the mail"),
                .optional(
                    "code", \.code, "The code for `auth.code.apply`, good for seven days; only with `returnCode`"),
                .optional("link", \.link, "The link with the code; only with `returnCode`, where there is a page"))

            public init(uid: String, email: String) {
                self.uid = uid
                self.email = email
            }
        }
    }
}
