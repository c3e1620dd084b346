extension Auth {
    /// Tokens with which trusted servers sign their own users in.
    public enum CustomToken {
        static let exampleToken = "eyJhbGciOiJSUzI1NiIs…"

        /// Signed with the current signing key, and valid for an hour. Others make custom tokens with the key of a
        /// service account (`auth.customToken.signers.set`).
        public struct Create: RPCRequest {
            public static let method = "auth.customToken.create"
            public static let summary = """
                Makes a token with which its holder signs in as a user, within an hour: a caller of this method can sign \
                in as every user
                """
            public static let access = Access.administrator
            public static let effect = Effect.read
            public static var example: RPCExample<Self> {
                RPCExample(Self(uid: "masuo-1", claims: ["room": "hq"]), Result(token: "eyJhbGciOiJFUzI1NiIs…"))
            }

            public var uid: String
            public var claims: JSONObject?

            public static let fields = Fields<Self>(
                blank: Self(uid: ""),
                .required(
                    "uid", \.uid,
                    """
                    The id of the user; signing in makes the account when there is none. 1 to 128 Unicode code points \
                    without control characters; one with `. # $ / [ ]` cannot be a key of the tree
                    """),
                .optional(
                    "claims", \.claims,
                    """
                    Claims of the ID tokens of the session, also after refreshes: at most 1,000 characters of JSON and 16 \
                    levels; names of standard claims are refused (`FORBIDDEN_CLAIM`)
                    """))

            public init(uid: String, claims: JSONObject? = nil) {
                self.uid = uid
                self.claims = claims
            }

            public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
                try params.requireAuthParameter("uid", reason: "MISSING_IDENTIFIER")
                return try decodeFields(params)
            }

            public struct Result: FieldObject, Hashable {
                public var token: String

                public static let fields = Fields<Self>(
                    blank: Self(token: ""),
                    .required(
                        "token", \.token,
                        "The custom token, a JWT signed with ES256: `auth.signInWithCustomToken` takes it, no service does"
                    ))

                public init(token: String) { self.token = token }
            }
        }

        /// Service accounts of other software, whose custom tokens are taken.
        public enum Signers {}
    }

    /// The account is made when there is none, whatever `auth.settings` says of signing up: a trusted server asks for
    /// it.
    public struct SignInWithCustomToken: RPCRequest {
        public typealias Result = Session
        public static let method = "auth.signInWithCustomToken"
        public static let summary = "Signs in with a custom token of a trusted server"
        public static let access = Access.anyone
        public static let effect = Effect.write
        public static var example: RPCExample<Self> { RPCExample(Self(token: CustomToken.exampleToken), .example) }

        public var token: String
        public var label: String?

        public static let fields = Fields<Self>(
            blank: Self(token: ""),
            .required(
                "token", \.token,
                """
                The custom token: of `auth.customToken.create`, or a JWT that a registered service account has signed \
                with RS256, as Firebase's server libraries make it. It is valid for an hour at most, and as often as it \
                is presented; a revocation of the user's sessions ends earlier ones
                """),
            .label(\.label))

        public init(token: String, label: String? = nil) {
            self.token = token
            self.label = label
        }

        public static func decode(_ params: JSONObject) throws(RPCError) -> Self {
            try params.requireAuthParameter("token", reason: "MISSING_CUSTOM_TOKEN")
            return try decodeFields(params)
        }
    }
}

extension Auth.CustomToken {
    /// A service account whose custom tokens are taken.
    public struct Signer: FieldObject, Hashable {
        public var email: String
        public var publicKey: String
        public var keyBits: Int
        public var createdAt: Int64

        public static let fields = Fields<Self>(
            blank: Self(email: "", publicKey: "", keyBits: 0, createdAt: 0),
            .required("email", \.email, "The service account: the `iss` and `sub` of its tokens"),
            .required("publicKey", \.publicKey, "Its public key in PEM"),
            .required("keyBits", \.keyBits, "The length of the key in bits"),
            .required("createdAt", \.createdAt, "When it was registered, in milliseconds since 1970"))

        /// - Parameter createdAt: in milliseconds since 1970.
        public init(email: String, publicKey: String, keyBits: Int, createdAt: Int64) {
            self.email = email
            self.publicKey = publicKey
            self.keyBits = keyBits
            self.createdAt = createdAt
        }

        static let exampleKey = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC…\n-----END PUBLIC KEY-----\n"
        static let example = Signer(
            email: "backend@chat.iam.gserviceaccount.com", publicKey: exampleKey, keyBits: 2048,
            createdAt: 1_795_000_000_000)
    }
}

extension Auth.CustomToken.Signers {
    /// Takes the public half alone. The file of a Google service account has only the private half: `hato-auth signers
    /// set --service-account-file` computes the other from it, and sends no more than that.
    public struct Set: RPCRequest {
        public typealias Result = Auth.CustomToken.Signer
        public static let method = "auth.customToken.signers.set"
        public static let summary = """
            Registers a service account, or replaces its key: its holder signs in as any user. A private key is \
            refused and not kept
            """
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            let signer = Auth.CustomToken.Signer.example
            return RPCExample(Self(email: signer.email, publicKey: signer.publicKey), signer)
        }

        public var email: String
        public var publicKey: String

        public static let fields = Fields<Self>(
            blank: Self(email: "", publicKey: ""),
            .required("email", \.email, "The e-mail address of the service account, at most 254 bytes"),
            .required(
                "publicKey", \.publicKey,
                """
                The public key in PEM (`BEGIN PUBLIC KEY` or `BEGIN RSA PUBLIC KEY`): RSA with 2,048 to 4,096 bits. Of a \
                certificate: `openssl x509 -pubkey -noout`
                """))

        public init(email: String, publicKey: String) {
            self.email = email
            self.publicKey = publicKey
        }
    }

    public struct List: RPCRequest {
        public static let method = "auth.customToken.signers.list"
        public static let summary =
            "Lists the registered service accounts in the order of their addresses, page by page"
        public static let access = Access.administrator
        public static let effect = Effect.read
        public static var example: RPCExample<Self> {
            RPCExample(Self(limit: 10), Result(signers: [Auth.CustomToken.Signer.example]))
        }

        public var after: String?
        public var limit: Int?

        public static let fields = Fields<Self>(
            blank: Self(),
            .optional(
                "after", \.after, "The `after` of the previous page; the first page when absent",
                example: Auth.CustomToken.Signer.example.email),
            .optional("limit", \.limit, "The maximum number of entries, 1 to 1,000; 1,000 when absent"))

        public init(after: String? = nil, limit: Int? = nil) {
            self.after = after
            self.limit = limit
        }

        public struct Result: FieldObject, Hashable {
            public var signers: [Auth.CustomToken.Signer]
            public var after: String?

            public static let fields = Fields<Self>(
                blank: Self(signers: []),
                .required("signers", \.signers, "The service accounts"),
                .optional("after", \.after, "The `after` of the next page; absent on the last one"))

            public init(signers: [Auth.CustomToken.Signer], after: String? = nil) {
                self.signers = signers
                self.after = after
            }
        }
    }

    /// Sessions that began with its tokens stay.
    public struct Remove: RPCRequest {
        public typealias Result = Empty
        public static let method = "auth.customToken.signers.remove"
        public static let summary =
            "Ends the registration of a service account: its custom tokens are refused from now on"
        public static let access = Access.administrator
        public static let effect = Effect.write
        public static var example: RPCExample<Self> {
            RPCExample(Self(email: Auth.CustomToken.Signer.example.email), Empty())
        }

        public var email: String

        public static let fields = Fields<Self>(
            blank: Self(email: ""),
            .required("email", \.email, "The service account, as `auth.customToken.signers.list` shows it"))

        public init(email: String) { self.email = email }
    }
}
