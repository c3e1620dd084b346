extension Auth {
    /// What a code is for.
    public enum CodeType: String, FieldChoice {
        /// Proves that the owner of the account receives mail at its address.
        case verifyEmail
        /// Sets a new password.
        case passwordReset
        /// Signs in, without a password.
        case signIn
        /// Changes the e-mail address, after its owner has received mail there.
        case changeEmail
        /// Sets the first password of an account that an administrator has made.
        case invite
        /// Brings the former e-mail address back, from which an account was changed.
        case recoverEmail
        /// Makes the account of a sign-up that was accepted (`signUpAlwaysAccepts`).
        case signUp
    }

    /// Codes that prove who receives the mail of an address.
    public enum Code {
        static let digitsExample = "483920"
        static let codeExample = "b7Yk3vWq0fTzK8mB5xN2cR7A…"

        /// What a code is for: the result of `auth.code.check` and `auth.code.apply`.
        public struct Found: FieldObject, Hashable {
            public var type: CodeType
            public var email: String?
            public var newEmail: String?

            public static let fields = Fields<Self>(
                blank: Self(type: .verifyEmail),
                .required("type", \.type, "What the code is for"),
                .optional(
                    "email", \.email,
                    """
                    The e-mail address of the account; absent for `signIn`, and for `changeEmail` of an account \
                    that had none
                    """),
                .optional("newEmail", \.newEmail, "The new e-mail address; only for `changeEmail`"))

            public init(type: CodeType, email: String? = nil, newEmail: String? = nil) {
                self.type = type
                self.email = email
                self.newEmail = newEmail
            }

            static let example = Found(type: .passwordReset, email: "masuo@example.com")
        }

        /// Every code of a mail has digits to type in, good for ten minutes and five tries, and a long form for links;
        /// using either uses up both. A newer code of the same type for the same address ends the older one.
        ///
        /// Where the setting `hide-who-exists` is on, the result is the same whether or not an account has the address.
        public struct Request: RPCRequest {
            public static let method = "auth.code.request"
            public static let summary = """
                Sends a mail with a code: digits to type in and, where there is a page for it, a link. \
                `EMAIL_NOT_FOUND` and `EMAIL_EXISTS` occur only for administrators, and with the setting \
                `hide-who-exists` off
                """
            public static let access = Access.anyone
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                var request = Self(type: .passwordReset)
                request.email = "masuo@example.com"
                request.locale = "ja"
                return RPCExample(request, Result(email: "masuo@example.com"))
            }

            public var type: CodeType
            public var email: String?
            public var newEmail: String?
            public var continueUrl: String?
            public var locale: String?
            public var returnCode: Bool?

            public static let fields = Fields<Self>(
                blank: Self(type: .verifyEmail),
                .required(
                    "type", \.type,
                    """
                    What the code is for: `verifyEmail` or `changeEmail` of the caller's account, `passwordReset` or \
                    `signIn` of the account with `email`. Sign-ups, `auth.users.invite` and changes of an address send the \
                    other types (`INVALID_REQ_TYPE`)
                    """),
                .optional(
                    "email", \.email,
                    """
                    The e-mail address, at most 254 bytes: required for `passwordReset` and `signIn`, and of \
                    administrators; users leave it out for their own account
                    """),
                .optional(
                    "newEmail", \.newEmail, "The new e-mail address, at most 254 bytes; only for `changeEmail`",
                    example: "masuo@example.jp"),
                .continueUrl(\.continueUrl),
                .mailLocale(\.locale),
                .optional(
                    "returnCode", \.returnCode,
                    "True: sends no mail and returns the code; only for administrators", example: true))

            public init(type: CodeType) { self.type = type }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireAuthParameter("type", reason: "MISSING_REQ_TYPE")
                return try decodeFields(params)
            }

            public struct Result: FieldObject, Hashable {
                public var email: String
                public var code: String?
                public var digits: String?
                public var link: String?

                public static let fields = Fields<Self>(
                    blank: Self(email: ""),
                    .required("email", \.email, "The address that gets the mail, if one is sent"),
                    .optional("code", \.code, "The long form of the code; only with `returnCode`"),
                    .optional("digits", \.digits, "The digits; only with `returnCode`"),
                    .optional(
                        "link", \.link, "The link with the long form; only with `returnCode`, where there is a page"))

                public init(email: String) { self.email = email }
            }
        }

        /// Changes nothing, except that wrong digits count as a try.
        public struct Check: RPCRequest {
            public typealias Result = Found
            public static let method = "auth.code.check"
            public static let summary = "Says what a code is for, and leaves it valid"
            public static let access = Access.anyone
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(code: digitsExample, email: "masuo@example.com"), .example)
            }

            public var code: String
            public var email: String?

            public static let fields = Fields<Self>(blank: Self(code: ""), .code(\.code), .codeEmail(\.email))

            public init(code: String, email: String? = nil) {
                self.code = code
                self.email = email
            }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireAuthParameter("code", reason: "MISSING_OOB_CODE")
                return try decodeFields(params)
            }
        }

        /// A new password and a changed address end every session of the account. Codes of the type `signIn` are for
        /// `auth.signInWithCode`.
        public struct Apply: RPCRequest {
            public typealias Result = Found
            public static let method = "auth.code.apply"
            public static let summary = "Does what a code is for, and uses it up; a refused password does not"
            public static let access = Access.anyone
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                var request = Self(code: digitsExample, email: "masuo@example.com")
                request.newPassword = "sazae-and-friends"
                return RPCExample(request, .example)
            }

            public var code: String
            public var email: String?
            public var newPassword: String?

            public static let fields = Fields<Self>(
                blank: Self(code: ""), .code(\.code), .codeEmail(\.email),
                .optional(
                    "newPassword", \.newPassword,
                    """
                    The new password, as in `auth.signUp`: required for `passwordReset`, `invite` and `signUp` \
                    (`MISSING_PASSWORD`), optional for `recoverEmail`, which otherwise deletes the password, and refused \
                    for other types (`INVALID_REQ_TYPE`)
                    """))

            public init(code: String, email: String? = nil) {
                self.code = code
                self.email = email
            }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireAuthParameter("code", reason: "MISSING_OOB_CODE")
                return try decodeFields(params)
            }
        }
    }

    /// The code proves that the caller receives the mail of the address: it becomes verified. An account whose address
    /// was not verified before loses its password and its sessions, which may be those of another person.
    public struct SignInWithCode: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.signInWithCode"
        public static let summary = "Signs in with a code of the type `signIn`"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            var session = Session.example
            session.isNewUser = false
            return RPCExample(Self(email: "masuo@example.com", code: Code.digitsExample), session)
        }

        public var email: String
        public var code: String
        public var createAccount: Bool?
        public var idToken: String?
        public var label: String?

        public static let fields = Fields<Self>(
            blank: Self(email: "", code: ""),
            .required("email", \.email, "The e-mail address for which the code was requested"),
            .code(\.code),
            .optional(
                "createAccount", \.createAccount,
                """
                True: makes an account when none has the address. Otherwise that is `EMAIL_NOT_FOUND`, which does \
                not use up the code
                """, example: true),
            .optional(
                "idToken", \.idToken,
                """
                An ID token, at most 16 KiB: its account gets the address and keeps its uid; its earlier sessions \
                end. `EMAIL_EXISTS` if another account has the address, `PROVIDER_ALREADY_LINKED` if this one has \
                another
                """, example: Session.example.idToken),
            .label(\.label))

        public init(email: String, code: String) {
            self.email = email
            self.code = code
        }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("email", reason: "MISSING_EMAIL")
            try params.requireAuthParameter("code", reason: "MISSING_OOB_CODE")
            return try decodeFields(params)
        }
    }
}

extension Field {
    @inline(__always)
    static func continueUrl(_ path: Property<String?>) -> Field {
        .optional(
            "continueUrl", path,
            """
            The URL where the page behind the link goes on, or without the setting `action-url` the page itself: \
            `https://` (`http://` for localhost), at most 2,048 bytes, of one of `continueDomains` \
            (`UNAUTHORIZED_DOMAIN` otherwise)
            """, example: "https://chat.example.com/signed-in")
    }

    @inline(__always)
    static func mailLocale(_ path: Property<String?>) -> Field {
        .optional(
            "locale", path,
            """
            The language of the mail, such as `ja` or `en-GB`, that of the setting `mail-locale` when absent or where \
            there is no text in it; English where there is none in that either
            """, example: "ja")
    }

    @inline(__always)
    fileprivate static func code(_ path: Property<String>) -> Field {
        .required(
            "code", path,
            """
            The digits of the mail, or the long form of its link. White space and hyphens between digits are \
            ignored, and full-width digits are taken
            """)
    }

    @inline(__always)
    fileprivate static func codeEmail(_ path: Property<String?>) -> Field {
        .optional("email", path, "The address that got the mail: required with digits (`MISSING_EMAIL`)")
    }
}
