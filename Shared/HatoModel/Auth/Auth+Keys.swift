extension Auth {
    /// A public key that verifies ID tokens (RFC 7517): always ES256, an elliptic curve key on P-256.
    public struct JWK: Codable, Sendable, Hashable {
        /// `EC`.
        public var kty: String
        /// `P-256`.
        public var crv: String
        /// The point's coordinates, 32 bytes each, base64url without padding.
        public var x: String
        public var y: String
        /// Names the key in the header of a token.
        public var kid: String
        /// `ES256`.
        public var alg: String
        /// `sig`.
        public var use: String

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

    /// The keys that verify ID tokens: the next, the current, and retired ones while their tokens live.
    public struct Keys: RPCRequest {
        public static let method = "auth.keys"
        public static let summary = "Lists the public keys that verify ID tokens"
        public static let access = Access.anyone
        public static let effect = Effect.read
        public static var example: RPCExample<Self> { RPCExample(Self(), Result(keys: [.example])) }

        public init() {}

        public struct Result: Codable, Sendable, Hashable {
            public var keys: [JWK]

            public init(keys: [JWK]) { self.keys = keys }
        }

        /// The next key becomes current, the current one retires and stays published while its tokens live.
        public struct Rotate: RPCRequest {
            public static let method = "auth.keys.rotate"
            public static let summary = "Signs ID tokens with the next key from now on"
            public static let access = Access.administrator
            public static let effect = Effect.write
            public static var example: RPCExample<Self> {
                RPCExample(Self(), Result(kid: JWK.example.kid, keys: [.example]))
            }

            public init() {}

            public struct Result: Codable, Sendable, Hashable {
                /// The key that signs from now on.
                public var kid: String
                public var keys: [JWK]

                public init(kid: String, keys: [JWK]) {
                    self.kid = kid
                    self.keys = keys
                }
            }
        }
    }
}
