extension Auth {
    /// A public key that verifies ID tokens (RFC 7517): always ES256, an elliptic curve key on P-256.
    public struct JWK: FieldObject, Hashable {
        public var kty: String
        public var crv: String
        public var x: String
        public var y: String
        public var kid: String
        public var alg: String
        public var use: String
        public var exp: Int64?

        public static let fields = Fields<Self>(
            blank: Self(kid: "", x: "", y: ""),
            .required("kty", \.kty, "The kind of key: `EC`"),
            .required("crv", \.crv, "The curve: `P-256`"),
            .required("x", \.x, "The first coordinate of the point: 32 bytes, base64url without padding"),
            .required("y", \.y, "The second coordinate of the point: 32 bytes, base64url without padding"),
            .required("kid", \.kid, "The id of the key: the `kid` in the header of the tokens that it signs"),
            .required("alg", \.alg, "The algorithm: `ES256`"),
            .required("use", \.use, "The use: `sig`"),
            .optional(
                "exp", \.exp,
                "When the key ends, in seconds since 1970: no ID token of it is valid later; only of a retired key",
                example: 1_795_003_660))

        /// A key with the fixed members of ES256.
        public init(kid: String, x: String, y: String) {
            kty = "EC"
            crv = "P-256"
            self.x = x
            self.y = y
            self.kid = kid
            alg = "ES256"
            use = "sig"
        }

        static let example = JWK(
            kid: "k1c9v2", x: "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
            y: "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM")
    }

    /// The keys that verify ID tokens and session cookies: the current one, the next, and retired ones while their
    /// tokens or cookies are valid.
    public struct Keys: RPCRequest {
        public static let method = "auth.keys"
        public static let summary = "Lists the public keys that verify ID tokens and session cookies"
        public static let access = Access.anyone
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(), Result(keys: [.example])) }

        public static let fields = Fields<Self>(blank: Self())

        public init() {}

        public struct Result: FieldObject, Hashable {
            public var keys: [JWK]

            public static let fields = Fields<Self>(
                blank: Self(keys: []),
                .required(
                    "keys", \.keys,
                    "The current key, the next one, and retired ones while tokens and cookies signed with them are valid"
                ))

            public init(keys: [JWK]) { self.keys = keys }
        }

        /// Ends a key at once, because others may know it.
        public struct Revoke: RPCRequest {
            public typealias Result = Rotate.Result
            public static let method = "auth.keys.revoke"
            public static let summary = """
                Ends a signing key at once, also the current one: auth refuses all tokens that it signed, also on \
                connections that have authenticated with one; messages and notifier do, and end the listeners of \
                such tokens, when they have fetched the keys again, at most 600 seconds later. Sessions stay: \
                `auth.refresh` returns a token of the current key
                """
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(kid: "c81f0a"), Result(kid: JWK.example.kid, keys: [.example]))
            }

            public var kid: String

            public static let fields = Fields<Self>(
                blank: Self(kid: ""),
                .required(
                    "kid", \.kid, "The id of the key: the `kid` of one of `auth.keys`; one that has ended stays ended"))

            public init(kid: String) { self.kid = kid }
        }

        /// Makes the next key current; the current one retires and stays published while its tokens are valid.
        public struct Rotate: RPCRequest {
            public static let method = "auth.keys.rotate"
            public static let summary = "Signs ID tokens with the next key from now on"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(), Result(kid: JWK.example.kid, keys: [.example]))
            }

            public static let fields = Fields<Self>(blank: Self())

            public init() {}

            public struct Result: FieldObject, Hashable {
                public var kid: String
                public var keys: [JWK]

                public static let fields = Fields<Self>(
                    blank: Self(kid: "", keys: []),
                    .required("kid", \.kid, "The id of the new key, which signs all later tokens"),
                    .required("keys", \.keys, "All keys that verify ID tokens"))

                public init(kid: String, keys: [JWK]) {
                    self.kid = kid
                    self.keys = keys
                }
            }
        }
    }
}
