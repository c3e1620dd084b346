extension Auth {
    /// The providers of identities: issuers of OpenID Connect, such as Google and Apple, whose ID tokens sign in.
    public enum Providers {
        /// A provider as administrators see it.
        public struct Entry: FieldObject, Hashable {
            public var id: String
            public var issuer: String
            public var clientIds: [String]
            public var trustsEmail: Bool
            public var allowsSignUp: Bool
            public var isDiscovered: Bool
            public var keyIds: [String]
            public var keysFetchedAt: Int64?

            public static let fields = Fields<Self>(
                blank: Self(id: "", issuer: "", clientIds: []),
                .required("id", \.id, "The id of the provider: `provider` of `auth.signInWithProvider`"),
                .required("issuer", \.issuer, "The `iss` of its tokens"),
                .required(
                    "clientIds", \.clientIds, "The ids of one's own apps at the provider: the `aud` of its tokens"),
                .required(
                    "trustsEmail", \.trustsEmail,
                    "Whether an e-mail address that it calls verified is that of the user, and links accounts"),
                .required("allowsSignUp", \.allowsSignUp, "Whether a sign-in makes an account"),
                .required(
                    "isDiscovered", \.isDiscovered,
                    "Whether its keys are fetched by discovery; false: they were given as `jwks`"),
                .required("keyIds", \.keyIds, "The `kid` of each of its keys"),
                .optional(
                    "keysFetchedAt", \.keysFetchedAt,
                    "When its keys were fetched, in milliseconds since 1970; absent for given ones"))

            public init(id: String, issuer: String, clientIds: [String]) {
                self.id = id
                self.issuer = issuer
                self.clientIds = clientIds
                trustsEmail = false
                allowsSignUp = false
                isDiscovered = true
                keyIds = []
            }

            static var example: Entry {
                var entry = Entry(
                    id: "google.com", issuer: "https://accounts.google.com",
                    clientIds: ["407408718192.apps.googleusercontent.com"])
                entry.trustsEmail = true
                entry.allowsSignUp = true
                entry.keyIds = ["c8ab71530972bba20b49f78a09c9852c43ff9118"]
                entry.keysFetchedAt = 1_795_000_000_000
                return entry
            }
        }

        /// Sets a provider as a whole. Its keys are fetched at once, from the address that its discovery document says,
        /// unless they are given or here already; they are fetched again when a token names an unknown key, at most
        /// once a minute, and once a day.
        public struct Set: RPCRequest {
            public typealias Result = Entry
            public static let method = "auth.providers.set"
            public static let summary = "Sets a provider whose ID tokens sign in, and fetches its keys"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static let isSlow = true
            public static var example: RPCExample<Self> {
                let entry = Entry.example
                var request = Self(id: entry.id, clientIds: entry.clientIds)
                request.trustsEmail = entry.trustsEmail
                request.allowsSignUp = entry.allowsSignUp
                return RPCExample(request, entry)
            }

            public var id: String
            public var issuer: String?
            public var clientIds: [String]
            public var jwks: JSONValue?
            public var trustsEmail: Bool
            public var allowsSignUp: Bool
            public var keepsIdentities: Bool?

            public static let fields = Fields<Self>(
                blank: Self(id: "", clientIds: []),
                .required(
                    "id", \.id,
                    """
                    The id: 3 to 64 of a-z, 0-9, `-` and `.`, with a `.` inside, such as `google.com`, `apple.com`, \
                    `oidc.work`. One that exists is replaced
                    """),
                .optional(
                    "issuer", \.issuer,
                    """
                    The `iss` of its tokens: an `https://` URL without query, at most 1,024 bytes, whose \
                    `/.well-known/openid-configuration` says the same; not needed for `google.com` and `apple.com`. \
                    `http://` for this machine only, with the setting `allow-private-providers`
                    """, example: "https://login.example.com"),
                .required(
                    "clientIds", \.clientIds,
                    """
                    The ids of one's own apps at the provider, 1 to 50 of at most 256 bytes: a token must be for one of \
                    them
                    """),
                .optionalJSON(
                    "jwks", \.jwks,
                    """
                    Its public keys as a JWK Set (RFC 7517), at most 64 KiB and 100 keys, each with a `kid`: RSA of \
                    2,048 to 4,096 bits, P-256 or Ed25519. With it no network is used
                    """,
                    example: ["keys": [Auth.JWK.example.json]]),
                .required(
                    "trustsEmail", \.trustsEmail,
                    """
                    Whether an e-mail address that it calls verified is that of the user: then the token signs in to \
                    the account with that address. Only for a provider whose users verify their own addresses alone
                    """),
                .required(
                    "allowsSignUp", \.allowsSignUp,
                    "Whether a sign-in makes an account, where `signUp` of `auth.settings` is `open`"),
                .optional(
                    "keepsIdentities", \.keepsIdentities,
                    """
                    True: the users of another issuer, which accounts have identities of under this id, are those of \
                    `issuer`, by the same `sub`. Otherwise that is an error (`provider_has_identities`)
                    """, example: true))

            public init(id: String, clientIds: [String]) {
                self.id = id
                self.clientIds = clientIds
                trustsEmail = false
                allowsSignUp = false
            }
        }

        /// There are at most `providers-max` providers, 50 by default, so one result has them all.
        public struct List: RPCRequest {
            public static let method = "auth.providers.list"
            public static let summary = "Lists the providers whose ID tokens sign in"
            public static let access = Access.administrator
            public static let effect = Effect.read
            public static var example: RPCExample<Self> { RPCExample(Self(), Result(providers: [.example])) }

            public static let fields = Fields<Self>(blank: Self())

            public init() {}

            public struct Result: FieldObject, Hashable {
                public var providers: [Entry]

                public static let fields = Fields<Self>(
                    blank: Self(providers: []),
                    .required("providers", \.providers, "The providers in the order of their ids"))

                public init(providers: [Entry]) { self.providers = providers }
            }
        }

        /// Accounts keep their links, which sign in again when the provider is set again with the same issuer.
        public struct Remove: RPCRequest {
            public typealias Result = Empty
            public static let method = "auth.providers.remove"
            public static let summary = "Removes a provider: its ID tokens are refused from now on"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> { RPCExample(Self(id: "oidc.work"), Empty()) }

            public var id: String

            public static let fields = Fields<Self>(
                blank: Self(id: ""), .required("id", \.id, "The id of the provider, as `auth.providers.list` shows it"))

            public init(id: String) { self.id = id }
        }
    }

    /// Signs in with the ID token that a provider has issued to the user's app. auth verifies it and never redirects.
    ///
    /// A known identity signs in to its account. `link` links an unknown one to the account of that token; otherwise a
    /// verified e-mail address of a trusted provider links it to the account with that address, whose password and
    /// sessions end if it was not verified before; otherwise it makes an account, where the provider and the settings
    /// allow that.
    public struct SignInWithProvider: RPCRequest {
        public static let method = "auth.signInWithProvider"
        public static let summary = """
            Signs in with a provider's ID token (Google, Apple, any OpenID Connect issuer), links it, or signs up with it
            """
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static let isSlow = true
        public static var example: RPCExample<Self> {
            var request = Self(provider: "google.com", idToken: "eyJhbGciOiJSUzI1NiIs…")
            request.nonce = "n-0S6_WzA2Mj"
            var session = Session.example
            session.isNewUser = false
            return RPCExample(request, Result(session: session, linked: false))
        }

        public var provider: String
        public var idToken: String
        public var nonce: String?
        public var displayName: String?
        public var link: String?
        public var linkOnly: Bool?
        public var label: String?

        public static let fields = Fields<Self>(
            blank: Self(provider: "", idToken: ""),
            .required("provider", \.provider, "The id of the provider, one of `providers` of `auth.settings.get`"),
            .required(
                "idToken", \.idToken,
                """
                The provider's ID token, at most 16 KiB, signed with RS256, ES256 or EdDSA by a key that its `kid` \
                names. It signs in once (`MISSING_OR_INVALID_NONCE` afterwards); an error does not use it up
                """),
            .optional(
                "nonce", \.nonce,
                """
                What the app gave the provider as nonce, or the text of which it gave the SHA-256 in hexadecimal. \
                Required where the token has one, and always for `apple.com`; 1 to 512 bytes
                """),
            .optional(
                "displayName", \.displayName,
                """
                The name for a new account, in place of the one in the token: Apple gives it to the app alone. As in \
                `auth.signUp`
                """, example: "マスオさん"),
            .optional(
                "link", \.link,
                """
                One's own ID token, at most 16 KiB, not older than 5 minutes unless the account is anonymous: its \
                account gets the identity and keeps its uid. An identity that has an account already signs in there
                """, example: Session.example.idToken),
            .optional(
                "linkOnly", \.linkOnly,
                "True: an identity that has an account already is an error instead (`FEDERATED_USER_ID_ALREADY_LINKED`)",
                example: true),
            .label(\.label))

        public init(provider: String, idToken: String) {
            self.provider = provider
            self.idToken = idToken
        }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("provider", reason: "INVALID_PROVIDER_ID")
            try params.requireToken("idToken", reason: "INVALID_IDP_RESPONSE")
            return try decodeFields(params)
        }

        /// The members of a session, and whether the identity was linked.
        public struct Result: FieldObject, Hashable {
            public var session: Session
            public var linked: Bool

            public static let fields = Fields<Self>(
                blank: Self(session: Session.fields.blank, linked: false),
                .required(
                    "linked", \.linked,
                    """
                    With `link`: whether the identity is linked to the account of `link`; false when it signs in to \
                    another account, which had it before. Without: whether the identity was linked to an account that \
                    was there before
                    """)
            )
            .inlining(\.session)

            public init(session: Session, linked: Bool) {
                self.session = session
                self.linked = linked
            }
        }
    }

    /// What a form needs that asks for the e-mail address first.
    public struct SignInMethods: RPCRequest {
        public static let method = "auth.signInMethods"
        public static let summary = """
            Says how the account with an e-mail address signs in; nothing about any with the setting `hide-who-exists`
            """
        public static let access = Access.anyone
        public static let effect = Effect.read
        public static var example: RPCExample<Self> {
            RPCExample(
                Self(email: "masuo@example.com"), Result(registered: true, methods: ["password", "google.com"]))
        }

        public var email: String

        public static let fields = Fields<Self>(
            blank: Self(email: ""), .required("email", \.email, "The e-mail address, at most 254 bytes"))

        public init(email: String) { self.email = email }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("email", reason: "MISSING_EMAIL")
            return try decodeFields(params)
        }

        public struct Result: FieldObject, Hashable {
            public var registered: Bool
            public var methods: [String]

            public static let fields = Fields<Self>(
                blank: Self(registered: false, methods: []),
                .required(
                    "registered", \.registered,
                    "Whether an account has the address; always false with the setting `hide-who-exists`"),
                .required(
                    "methods", \.methods,
                    """
                    How it signs in: `password`, `emailLink` (a code of a mail), and the ids of its providers; always \
                    empty with the setting `hide-who-exists`
                    """))

            public init(registered: Bool, methods: [String]) {
                self.registered = registered
                self.methods = methods
            }
        }
    }
}
