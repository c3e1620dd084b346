extension Auth {
    /// Which users make accounts.
    public enum SignUpPolicy: String, FieldChoice {
        /// All users.
        case open
        /// Administrators, and users that one of them has invited.
        case invited
        /// Administrators alone.
        case closed
    }

    /// The settings that administrators change while the service runs.
    public struct Settings: FieldObject, Hashable {
        public var signUp: SignUpPolicy
        public var anonymous: Bool
        public var passwordSignIn: Bool
        public var passwordLengthMin: Int
        public var codeSignIn: Bool
        public var continueDomains: [String]
        public var providers: [String]
        public var emailDomains: [String]?
        public var hidesWhoExists: Bool?
        public var signUpAlwaysAccepts: Bool?
        public var recentSignInSeconds: Int64?
        public var fixed: [String]?

        public static let fields = Fields<Self>(
            blank: Self(signUp: .open, anonymous: true, passwordSignIn: true, passwordLengthMin: 15),
            .required(
                "signUp", \.signUp,
                """
                Which users make accounts: all (`open`), administrators and invited users (`invited`), or \
                administrators alone (`closed`)
                """),
            .required(
                "anonymous", \.anonymous, "Whether `auth.signUp` makes anonymous accounts, where `signUp` is `open`"),
            .required("passwordSignIn", \.passwordSignIn, "Whether people sign up and sign in with a password"),
            .required("passwordLengthMin", \.passwordLengthMin, "The minimum length of passwords in characters"),
            .required("codeSignIn", \.codeSignIn, "Whether people sign in with a code of a mail"),
            .required("continueDomains", \.continueDomains, "The hosts of `continueUrl`"),
            .required("providers", \.providers, "The ids of the providers that people sign in with"),
            .optional(
                "emailDomains", \.emailDomains,
                """
                The domains of e-mail addresses with which people sign up; all when empty. Only for administrators, \
                as the members below
                """),
            .optional(
                "hidesWhoExists", \.hidesWhoExists, "Whether a wrong name and a wrong password give the same error"),
            .optional(
                "signUpAlwaysAccepts", \.signUpAlwaysAccepts,
                "Whether `auth.signUp` says `accepted` for every e-mail address, and the mail there says what to do"),
            .optional(
                "recentSignInSeconds", \.recentSignInSeconds,
                "Seconds after a sign-in in which credentials may be changed; 0: always"),
            .optional(
                "fixed", \.fixed,
                "The members that were set when the service was started: `auth.settings.set` does not change these"))

        public init(signUp: SignUpPolicy, anonymous: Bool, passwordSignIn: Bool, passwordLengthMin: Int) {
            self.signUp = signUp
            self.anonymous = anonymous
            self.passwordSignIn = passwordSignIn
            self.passwordLengthMin = passwordLengthMin
            codeSignIn = true
            continueDomains = []
            providers = []
        }

        static var example: Settings {
            var settings = Settings(signUp: .open, anonymous: true, passwordSignIn: true, passwordLengthMin: 15)
            settings.continueDomains = ["chat.example.com"]
            settings.providers = ["apple.com", "google.com"]
            settings.emailDomains = ["example.com"]
            settings.hidesWhoExists = true
            settings.signUpAlwaysAccepts = false
            settings.recentSignInSeconds = 300
            settings.fixed = ["passwordLengthMin"]
            return settings
        }
    }
}

extension Auth.Settings {
    public struct Get: RPCRequest {
        public typealias Result = Auth.Settings
        public static let method = "auth.settings.get"
        public static let summary = "Reads the settings that a form for signing up needs; administrators read all"
        public static let access = Access.anyone
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(), .example) }

        public static let fields = Fields<Self>(blank: Self())

        public init() {}
    }

    /// Changes the given members and leaves the others. What was set when the service was started stays in effect; the
    /// change is kept for a start without it.
    public struct Set: RPCRequest {
        public typealias Result = Auth.Settings
        public static let method = "auth.settings.set"
        public static let summary = "Changes settings, and returns those that are in effect"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var request = Self()
            request.emailDomains = ["example.com"]
            return RPCExample(request, .example)
        }

        public var signUp: Auth.SignUpPolicy?
        public var anonymous: Bool?
        public var passwordSignIn: Bool?
        public var codeSignIn: Bool?
        public var continueDomains: [String]?
        public var emailDomains: [String]?
        public var hidesWhoExists: Bool?
        public var signUpAlwaysAccepts: Bool?
        public var passwordLengthMin: Int?
        public var recentSignInSeconds: Int64?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "signUp", \.signUp,
                """
                Which users make accounts: all (`open`), administrators and invited users (`invited`), or \
                administrators alone (`closed`). For others `auth.signUp` returns `ADMIN_ONLY_OPERATION`
                """, example: .closed),
            .optional(
                "anonymous", \.anonymous,
                "Whether `auth.signUp` makes anonymous accounts, where `signUp` is `open` (`ADMIN_ONLY_OPERATION` otherwise)",
                example: false),
            .optional(
                "passwordSignIn", \.passwordSignIn,
                """
                Whether people sign up (`OPERATION_NOT_ALLOWED` otherwise) and sign in (`PASSWORD_LOGIN_DISABLED` \
                otherwise) with a password
                """, example: true),
            .optional(
                "codeSignIn", \.codeSignIn,
                "Whether people sign in with a code of a mail (`OPERATION_NOT_ALLOWED` otherwise)", example: true),
            .optional(
                "continueDomains", \.continueDomains,
                """
                At most 100 hosts of URLs that mails may link to (`continueUrl`); none when empty \
                (`UNAUTHORIZED_DOMAIN`)
                """, example: ["chat.example.com"]),
            .optional(
                "emailDomains", \.emailDomains,
                """
                At most 100 domains of e-mail addresses with which people sign up, and to which they change \
                (`UNAUTHORIZED_DOMAIN` otherwise); all domains when empty. Administrators may give any address
                """),
            .optional(
                "hidesWhoExists", \.hidesWhoExists, "Whether a wrong name and a wrong password give the same error",
                example: true),
            .optional(
                "signUpAlwaysAccepts", \.signUpAlwaysAccepts,
                """
                Whether `auth.signUp` says `accepted` for every e-mail address: a new one gets a code that makes the \
                account, and the holder of a taken one a mail that says so. Needs a mail server; `hidesWhoExists` is \
                on with it
                """, example: false),
            .optional(
                "passwordLengthMin", \.passwordLengthMin, "The minimum length of new passwords in characters, 1 to 128",
                example: 15),
            .optional(
                "recentSignInSeconds", \.recentSignInSeconds,
                "Seconds after a sign-in in which credentials may be changed, at most 3,153,600,000; 0: always",
                example: 300))

        public init() {}

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            if params["allowDuplicateEmails"] != nil {
                throw .invalidArgument(
                    "allowDuplicateEmails", reason: "INVALID_SETTING",
                    "'allowDuplicateEmails' cannot be set, one e-mail address is one account; set "
                        + #"others, e.g. {"anonymous": false}"#)
            }
            return try decodeFields(params)
        }
    }
}
