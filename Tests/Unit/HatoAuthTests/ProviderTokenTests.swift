import Crypto
import HatoIdentity
import HatoModel
import Testing

@testable import HatoAuth

/// Which ID tokens of a provider are right, by value.
@Suite(.timeLimit(.minutes(10)))
struct ProviderTokenTests {
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func verifier(_ change: (inout ProviderTokenVerifier) throws -> Void = { _ in }) throws
        -> ProviderTokenVerifier
    {
        var verifier = ProviderTokenVerifier(
            provider: "oidc.work", issuer: TestIssuer.url, clientIds: [TestIssuer.clientId, "com.example.web"],
            keys: try ProviderKeySet(try issuer.jwks()), tokenBytesMax: 16 << 10)
        try change(&verifier)
        return verifier
    }

    private func error(
        _ token: String, nonce: String? = nil, at second: Int64 = TestIssuer.now,
        by verifier: ProviderTokenVerifier? = nil
    ) throws -> ProviderTokenError? {
        let verifier = try verifier ?? self.verifier()
        do throws(ProviderTokenError) {
            _ = try verifier.verify(token, nonce: nonce, now: second * 1000)
            return nil
        } catch { return error }
    }

    @Test(arguments: TestIssuer.Algorithm.allCases)
    func aRightTokenSaysItsUser(algorithm: TestIssuer.Algorithm) throws {
        let token = try issuer.token(TestIssuer.claims(), algorithm)
        let identity = try verifier().verify(token, nonce: nil, now: TestIssuer.now * 1000)
        #expect(identity.provider == "oidc.work" && identity.uid == "sub-of-masuo")
        #expect(identity.email == "masuo@example.com" && identity.emailVerified)
        #expect(identity.displayName == "フグ田マスオ" && identity.photoUrl == "https://issuer.example/masuo.png")
        #expect(identity.expiresAt == TestIssuer.now + 3_600)
    }

    @Test func appleSaysTrueAsText() throws {
        let text = try issuer.token(TestIssuer.claims { $0["email_verified"] = "true" })
        #expect(try verifier().verify(text, nonce: nil, now: TestIssuer.now * 1000).emailVerified)
        for value: JSONValue in [false, "false", "yes", 1, .null, "TRUE"] {
            let token = try issuer.token(TestIssuer.claims { $0["email_verified"] = value })
            #expect(try !verifier().verify(token, nonce: nil, now: TestIssuer.now * 1000).emailVerified)
        }
    }

    // MARK: Algorithms and keys

    @Test func theAlgorithmIsThatOfTheKey() throws {
        for name in ["none", "None", "HS256", "HS512", "PS256", "RS384", "RS512", "ES384", "ES256K", "", "rs256"] {
            let token = try issuer.token { $0["alg"] = .string(name) }
            #expect(try error(token) == .unsupportedAlgorithm, "\(name)")
        }
        let unsigned = try issuer.token { $0["alg"] = "none" }.split(separator: ".").prefix(2).joined(separator: ".")
        #expect(try error("\(unsigned).") == .unsupportedAlgorithm)
        for (algorithm, other) in [(TestIssuer.Algorithm.rs256, "ES256"), (.es256, "RS256"), (.edDSA, "ES256")] {
            let token = try issuer.token(TestIssuer.claims(), algorithm) { $0["alg"] = .string(other) }
            #expect(try error(token) == .unsupportedAlgorithm, "a key of another type")
        }
        #expect(try error(issuer.token { $0["alg"] = nil }) == .unsupportedAlgorithm)
    }

    /// The classic confusion: the public key as the secret of an HMAC.
    @Test func thePublicKeyIsNoSecret() throws {
        let header: JSONObject = ["alg": "HS256", "kid": .string(TestIssuer.Algorithm.rs256.kid)]
        let input =
            Base64.url.encode(JSONValue.object(header).encoded) + "."
            + Base64.url.encode(JSONValue.object(TestIssuer.claims()).encoded)
        let n = try #require(try issuer.jwk(.rs256)["n"]?.string)
        for secret in [Array(n.utf8), try #require(Base64.url.decode(n.utf8))] {
            let code = HMAC<SHA256>.authenticationCode(for: Array(input.utf8), using: SymmetricKey(data: secret))
            #expect(try error("\(input).\(Base64.url.encode(Array(code)))") == .unsupportedAlgorithm)
        }
    }

    @Test func aKeyIsFoundByItsIdAlone() throws {
        for kid in ["other", "../../../etc/passwd", "/dev/null", "ES256-key\u{0}", "es256-key", "'; DROP TABLE keys"] {
            #expect(try error(issuer.token { $0["kid"] = .string(kid) }) == .unknownKey, "\(kid)")
        }
        for value: JSONValue in ["", 1, .null, .string(String(repeating: "k", count: 257))] {
            #expect(try error(issuer.token { $0["kid"] = value }) == .malformed)
        }
        let stranger = try TestIssuer()
        #expect(try error(stranger.token()) == .badSignature)
    }

    @Test func aTokenNamesItsKeyUnlessThereIsOneAlone() throws {
        #expect(try error(issuer.token { $0["kid"] = nil }) == .unknownKey)
        let one = try verifier { $0.keys = try ProviderKeySet(try issuer.jwks([.es256])) }
        #expect(try error(issuer.token { $0["kid"] = nil }, by: one) == nil)
        #expect(try error(issuer.token { $0["kid"] = "other" }, by: one) == .unknownKey)
        #expect(
            try error(issuer.token(TestIssuer.claims(), .edDSA) { $0["kid"] = nil }, by: one) == .unsupportedAlgorithm)
        let stranger = try TestIssuer()
        #expect(try error(stranger.token { $0["kid"] = nil }, by: one) == .unknownKey, "it may be of the next key")
    }

    @Test func aTokenDoesNotBringItsKey() throws {
        let stranger = try TestIssuer()
        let own = JSONValue.object(try stranger.jwk(.es256))
        for (name, value): (String, JSONValue) in [
            ("jwk", own), ("jku", "https://evil.example/keys"), ("x5c", ["MIIB"]), ("x5u", "https://evil.example/x"),
        ] {
            #expect(try error(stranger.token { $0[name] = value }) == .embeddedKey, "\(name)")
            #expect(try error(issuer.token { $0[name] = value }) == .embeddedKey, "\(name)")
        }
        #expect(try error(issuer.token { $0["crit"] = ["exp"] }) == .malformed)
        #expect(try error(issuer.token { $0["typ"] = "at+jwt" }) == .malformed)
        #expect(try error(issuer.token { $0["typ"] = nil }) == nil)
    }

    @Test(arguments: TestIssuer.Algorithm.allCases)
    func noByteCanBeAnother(algorithm: TestIssuer.Algorithm) throws {
        let verifier = try verifier()
        let bytes = Array(try issuer.token(TestIssuer.claims(), algorithm).utf8)
        for index in bytes.indices {
            for flip: UInt8 in [0x01, 0x04, 0x20] {
                var flipped = bytes
                flipped[index] ^= flip
                let token = String(decoding: flipped, as: UTF8.self)
                #expect(try error(token, by: verifier) != nil, "byte \(index)")
            }
        }
    }

    @Test func whatIsNoTokenIsRefusedAtOnce() throws {
        let token = try issuer.token()
        let long = String(repeating: "a", count: 1 << 20)
        for text in [
            "", ".", "..", "a.b", "a.b.c", "a.b.c.d", token + ".", token + "=", " " + token, token + "\n", long,
            "\(long).\(long).\(long)", String(repeating: ".", count: 16 << 10), "\u{0}", "🕊.🕊.🕊",
        ] {
            #expect(try error(text) == .malformed, "\(text.prefix(20))")
        }
        let deep = JSONValue.string("x")
        let nested = (0..<20).reduce(deep) { value, _ in [value] }
        #expect(try error(issuer.token(TestIssuer.claims { $0["deep"] = nested })) == .malformed)
        #expect(try error(issuer.token { $0["deep"] = nested }) == .malformed)
    }

    // MARK: Claims

    @Test func issuerAndAudienceAreOurs() throws {
        for value: JSONValue in [
            "https://issuer.example/", "https://other.example", "", .null, ["https://issuer.example"],
        ] {
            #expect(try error(issuer.token(TestIssuer.claims { $0["iss"] = value })) == .wrongIssuer)
        }
        func audience(_ value: JSONValue?, azp: JSONValue? = nil) throws -> ProviderTokenError? {
            try error(
                issuer.token(
                    TestIssuer.claims {
                        $0["aud"] = value
                        $0["azp"] = azp
                    }))
        }
        #expect(try audience("com.example.web") == nil)
        #expect(try audience(["com.example.web"]) == nil)
        #expect(try audience("com.example.web", azp: "of-android") == nil, "Google's for Android")
        #expect(try audience(["com.example.web", "x"], azp: "com.example.chat") == nil)
        #expect(try audience(["com.example.web", "x"], azp: "x") == .wrongAudience)
        #expect(try audience(["com.example.web", "x"]) == .wrongAudience)
        #expect(try audience("com.example.other") == .wrongAudience)
        #expect(try audience("com.example.chat ") == .wrongAudience)
        #expect(try audience([]) == .wrongAudience)
        #expect(try audience(["com.example.web", 1]) == .badClaim("aud"))
        for value: JSONValue? in [nil, .null, 1, ["com.example.chat": true]] {
            #expect(try audience(value) == .badClaim("aud"))
        }
    }

    @Test func googleWritesItsIssuerInTwoWays() throws {
        let google = try verifier { $0.issuer = "https://accounts.google.com" }
        for name in ["https://accounts.google.com", "accounts.google.com"] {
            #expect(try error(issuer.token(TestIssuer.claims { $0["iss"] = .string(name) }), by: google) == nil)
        }
        #expect(try error(issuer.token(TestIssuer.claims { $0["iss"] = "issuer.example" })) == .wrongIssuer)
    }

    @Test func theUserHasAnId() throws {
        let longest = String(repeating: "s", count: 255)
        #expect(try error(issuer.token(TestIssuer.claims(longest))) == nil)
        for value: JSONValue? in [nil, .null, "", 17, .string(longest + "s"), "a\u{0}b", "a\nb"] {
            #expect(try error(issuer.token(TestIssuer.claims { $0["sub"] = value })) == .badClaim("sub"))
        }
    }

    @Test func aTokenHasItsTime() throws {
        let now = TestIssuer.now
        let token = try issuer.token()
        #expect(try error(token, at: now + 3_599) == nil)
        #expect(try error(token, at: now + 3_600) == .expired)
        #expect(try error(token, at: now - 60) == nil)
        #expect(try error(token, at: now - 61) == .notYetValid)
        let early = try issuer.token(TestIssuer.claims { $0["nbf"] = .number(Double(now + 100)) })
        #expect(try error(early) == .notYetValid)
        #expect(try error(early, at: now + 40) == nil)
        let endless = try issuer.token(TestIssuer.claims { $0["exp"] = 253_402_300_799 })
        #expect(try error(endless, at: now + 86_399) == nil)
        #expect(try error(endless, at: now + 86_400) == .expired, "no longer than its use is remembered")
        for name in ["iat", "exp"] {
            let values: [JSONValue?] = [nil, .null, "1795000000", .number(-1), .number(1e300), true]
            for value in values {
                #expect(try error(issuer.token(TestIssuer.claims { $0[name] = value })) == .badClaim(name))
            }
        }
    }

    // MARK: Nonces

    @Test func aNonceIsGivenAsItIsOrAsItsHash() throws {
        let digits = SHA256.hash(data: Array("a-nonce".utf8)).flatMap { [$0 >> 4, $0 & 15] }
        let text = digits.map { String($0, radix: 16) }.joined()
        for claim in ["a-nonce", text] {
            let token = try issuer.token(TestIssuer.claims { $0["nonce"] = .string(claim) })
            #expect(try error(token, nonce: "a-nonce") == nil)
            #expect(try error(token, nonce: "another") == .wrongNonce)
            #expect(try error(token, nonce: "") == .wrongNonce)
            #expect(try error(token, nonce: String(repeating: "n", count: 513)) == .wrongNonce)
            #expect(try error(token) == .nonceNotGiven, "a thief of the token does not know it")
        }
        let hashed = try issuer.token(TestIssuer.claims { $0["nonce"] = .string(text) })
        #expect(try error(hashed, nonce: text) == nil, "the app may have given the provider the hash of another hash")
        #expect(try error(issuer.token(), nonce: "a-nonce") == .missingNonce)
        #expect(try error(issuer.token(TestIssuer.claims { $0["nonce"] = 1 }), nonce: "1") == .badClaim("nonce"))
    }

    @Test func appleNeedsANonce() throws {
        let apple = try verifier { $0.issuer = "https://appleid.apple.com" }
        func token(_ nonce: JSONValue?) throws -> String {
            try issuer.token(
                TestIssuer.claims {
                    $0["iss"] = "https://appleid.apple.com"
                    $0["nonce"] = nonce
                })
        }
        #expect(try error(token(nil), by: apple) == .missingNonce)
        #expect(try error(token(.null), by: apple) == .missingNonce)
        #expect(try error(token("n"), by: apple) == .nonceNotGiven)
        #expect(try error(token("n"), nonce: "n", by: apple) == nil)
    }
}
