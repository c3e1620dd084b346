import Crypto
import CryptoExtras
import Foundation
import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Custom tokens that are none, and what attackers try with them.
@Suite(.timeLimit(.minutes(10)))
struct CustomTokenAttackTests {
    private func reason(_ bench: AuthBench, _ token: String) async -> String? {
        await wireError { try await bench.signIn(customToken: token) }?.reason
    }

    private func bench() async throws -> (AuthBench, ServiceAccount) {
        let bench = try await AuthBench.open()
        let account = try ServiceAccount()
        try await bench.register(account)
        return (bench, account)
    }

    @Test func mistakesAreRefusedInTheirOrder() async throws {
        let (bench, account) = try await bench()
        let now = Double(bench.now / 1000)
        let invalid = "INVALID_CUSTOM_TOKEN"
        let wrong: [(name: String, value: JSONValue?, reason: String)] = [
            ("iss", nil, invalid), ("iss", 5, invalid), ("iss", "other@example.com", "CREDENTIAL_MISMATCH"),
            ("iss", "urn:hato:auth:other", "CREDENTIAL_MISMATCH"), ("iss", "urn:hato:auth:hato", invalid),
            ("sub", nil, invalid), ("sub", "other@example.com", invalid), ("aud", nil, invalid),
            ("aud", "hato", invalid), ("aud", .array([.string(CustomTokenVerifier.audience)]), invalid),
            ("tenant_id", "x", invalid), ("iat", nil, invalid), ("iat", "1", invalid), ("iat", -1, invalid),
            ("iat", .number(now + 61), invalid), ("iat", .number(now - 1), invalid), ("exp", nil, invalid),
            ("exp", .number(now), invalid), ("exp", .number(now + 3601), invalid), ("exp", 1e300, invalid),
            ("uid", nil, "MISSING_IDENTIFIER"), ("uid", "", "MISSING_IDENTIFIER"), ("uid", .null, "MISSING_IDENTIFIER"),
            ("uid", 5, invalid), ("uid", "a\u{0}b", invalid),
            ("uid", .string(String(repeating: "a", count: 129)), invalid),
            ("claims", "x", invalid), ("claims", ["sub": "x"], "FORBIDDEN_CLAIM"),
            ("claims", ["firebase": [:]], "FORBIDDEN_CLAIM"), ("claims", ["sid": "x"], "FORBIDDEN_CLAIM"),
            ("claims", ["a": .string(String(repeating: "x", count: 1000))], invalid),
        ]
        for (name, value, expected) in wrong {
            var claims = ServiceAccount.claims("masuo-1", at: bench.now)
            claims[name] = value
            #expect(await reason(bench, try account.sign(claims)) == expected, "\(name): \(value ?? .null)")
        }
        // The first of two mistakes.
        var claims = ServiceAccount.claims("", at: bench.now, ["iss": "x"])
        #expect(await reason(bench, try account.sign(claims)) == "MISSING_IDENTIFIER")
        claims["aud"] = "x"
        #expect(await reason(bench, try account.sign(claims)) == invalid)
        #expect(await reason(bench, "") == "MISSING_CUSTOM_TOKEN")
        let named = ServiceAccount.claims("masuo-1", at: bench.now, ["nonce": "x"])
        let error = await wireError { try await bench.signIn(customToken: try account.sign(named)) }
        #expect(error?.message.contains("nonce") == true)
        #expect(await wireError { try await bench.service.users.user(Auth.Users.Get(uid: "masuo-1")) } != nil)
    }

    @Test func claimsAreAsDeepAsATokenMayHaveThem() async throws {
        let (bench, account) = try await bench()
        func nested(_ levels: Int) -> JSONObject {
            (1..<levels).reduce(["a": 1] as JSONObject) { inner, _ in ["a": .object(inner)] }
        }
        #expect(await wireError { try bench.customToken("masuo-1", nested(17)) }?.reason == "INVALID_CLAIMS")
        let deep = try account.sign(ServiceAccount.claims("masuo-1", at: bench.now, nested(17)))
        #expect(await reason(bench, deep) == "INVALID_CUSTOM_TOKEN")
        for token in [
            try bench.customToken("masuo-1", nested(16)),
            try account.sign(ServiceAccount.claims("masuo-1", at: bench.now, nested(16))),
        ] {
            let session = try await bench.signIn(customToken: token)
            #expect(try await bench.claims(session.idToken)["a"]?["a"] != nil)
        }
    }

    @Test func makingATokenRefusesWhatSigningInWould() async throws {
        let bench = try await AuthBench.open()
        let long: JSONObject = ["a": .string(String(repeating: "ん", count: 340))]
        #expect(await wireError { try bench.customToken("masuo-1", long) }?.reason == "CLAIMS_TOO_LARGE")
        #expect(await wireError { try bench.customToken("masuo-1", ["exp": 1]) }?.reason == "FORBIDDEN_CLAIM")
        for uid in ["", String(repeating: "a", count: 129), "a\u{1F}"] {
            #expect(await wireError { try bench.customToken(uid) }?.reason == "INVALID_LOCAL_ID", "\(uid)")
        }
    }

    @Test func otherAlgorithmsAndKeysAreRefused() async throws {
        let (bench, account) = try await bench()
        let claims = ServiceAccount.claims("masuo-1", at: bench.now)
        let other = try ServiceAccount.other()
        let own = try #require(bench.service.ring.current.key)
        var tokens: [String] = []
        for algorithm in ["none", "None", "NONE", "", "RS384", "RS512", "PS256", "ES256", "EdDSA"] {
            let header: JSONObject = ["alg": .string(algorithm), "typ": "JWT"]
            tokens += [ServiceAccount.input(header, claims) + ".", try account.sign(claims, header: header)]
        }
        // The public key as the secret of HS256.
        let hmacInput = ServiceAccount.input(["alg": "HS256", "typ": "JWT"], claims)
        let secret = SymmetricKey(data: Data(account.publicKey.utf8))
        let code = HMAC<SHA256>.authenticationCode(for: Data(hmacInput.utf8), using: secret)
        tokens.append("\(hmacInput).\(Base64.url.encode(Array(code)))")
        // Another key, also one that the token brings along.
        let certificate: JSONValue = ["MIIB"]
        let jwk: JSONValue = ["kty": "RSA", "e": "AQAB", "n": "x"]
        for header: JSONObject in [
            ["alg": "RS256"], ["alg": "RS256", "jwk": jwk], ["alg": "RS256", "x5c": certificate],
            ["alg": "RS256", "jku": "https://example.com/keys", "kid": "../../key"],
        ] {
            tokens.append(try other.sign(claims, header: header))
        }
        tokens.append(try account.sign(claims, header: ["alg": "RS256", "crit": ["exp"], "exp": 1]))
        tokens.append(try account.sign(claims, header: ["alg": "RS256", "typ": "at+jwt"]))
        tokens.append(try own.sign(claims))
        tokens.append(try own.sign(claims, type: CustomTokenVerifier.type))
        // As if this service had made it.
        var ours = claims
        (ours["iss"], ours["sub"]) = ("urn:hato:auth:hato", "urn:hato:auth:hato")
        tokens += [
            try account.sign(ours), try own.sign(ours), try SigningKey(kid: own.kid).sign(ours, type: "custom+jwt"),
            try SigningKey(kid: "x").sign(ours, type: "custom+jwt"),
            try account.sign(ours, header: ["alg": "ES256", "typ": "custom+jwt", "kid": .string(own.kid)]),
            try #require(bench.service.ring.next.key).sign(ours, type: "custom+jwt"),
        ]
        for token in tokens { #expect(await reason(bench, token) == "INVALID_CUSTOM_TOKEN", "\(token)") }
        // The same claims, signed as they should be.
        _ = try await bench.signIn(customToken: try own.sign(ours, type: "custom+jwt"))
        _ = try await bench.signIn(customToken: try account.sign(claims))
    }

    @Test func noByteCanBeChanged() async throws {
        let (bench, account) = try await bench()
        for token in [
            try bench.customToken("masuo-1"), try account.sign(ServiceAccount.claims("masuo-1", at: bench.now)),
        ] {
            let bytes = Array(token.utf8)
            for index in bytes.indices {
                var changed = bytes
                changed[index] ^= 1
                let text = String(decoding: changed, as: UTF8.self)
                let refused = await reason(bench, text)
                #expect(["INVALID_CUSTOM_TOKEN", "CREDENTIAL_MISMATCH"].contains(refused), "byte \(index)")
            }
        }
        for garbage in [
            "x", "a.b.c", "..", String(repeating: "a", count: 1 << 20), String(repeating: ".", count: 1 << 20),
            String(repeating: "[", count: 10_000),
        ] {
            #expect(await reason(bench, garbage) == "INVALID_CUSTOM_TOKEN")
        }
    }

    @Test func tokensOfOneKindAreNoneOfAnother() async throws {
        let (bench, account) = try await bench()
        let own = try bench.customToken("masuo-1")
        let session = try await bench.signIn(customToken: own)
        let cookie = try await bench.cookie(session)
        for token in [session.idToken, cookie] {
            let refused = await reason(bench, token)
            #expect(["INVALID_CUSTOM_TOKEN", "CREDENTIAL_MISMATCH"].contains(refused))
        }
        for token in [own, try account.sign(ServiceAccount.claims("masuo-1", at: bench.now)), cookie] {
            let refused = await wireError { try await bench.service.authenticator.authenticate(token) }
            #expect(refused?.reason == "INVALID_ID_TOKEN")
        }
        for token in [own, session.idToken] {
            let refused = await wireError { try await bench.claims(ofCookie: token) }
            #expect(refused?.reason == "INVALID_SESSION_COOKIE")
        }
        // Whatever else the token says: its header is no ID token's.
        let key = try #require(bench.service.ring.current.key)
        let claims = try await bench.claims(session.idToken)
        let typed = try key.sign(claims, type: CustomTokenVerifier.type)
        #expect(await wireError { try await bench.service.authenticator.authenticate(typed) } != nil)
    }

    @Test func oneAddressTriesOnlySoManyTokens() async throws {
        let bench = try await AuthBench.open { $0.limits.signInsPerAddress = RateLimit(burst: 3, perMinute: 1) }
        for _ in 0..<3 {
            let refused = await wireError { try await bench.signIn(customToken: "x", from: "198.51.100.1") }
            #expect(refused?.reason == "INVALID_CUSTOM_TOKEN" && refused?.code == .invalidArgument)
        }
        let limited = await wireError { try await bench.signIn(customToken: "x", from: "198.51.100.1") }
        #expect(limited?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER" && limited?.data["retryAfterMs"] != nil)
        _ = try await bench.signIn(customToken: try bench.customToken(), from: "198.51.100.2")
    }

    @Test func keysOfSignersAreCheckedAndNoPrivateOneIsKept() async throws {
        let bench = try await AuthBench.open()
        let account = try ServiceAccount()
        let elliptic = P256.Signing.PrivateKey()
        let short = try _RSA.Signing.PrivateKey(unsafeKeySize: _RSA.Signing.KeySize(bitCount: 1024))
        let hidden = account.key.pemRepresentation
            .replacing("PRIVATE KEY", with: "PUBLIC KEY")
        for pem in [
            account.key.pemRepresentation, hidden, elliptic.publicKey.pemRepresentation,
            short.publicKey.pemRepresentation,
            "", "x", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----", String(repeating: "A", count: 10_000),
            #"{"private_key":"\#(account.key.pemRepresentation)"}"#,
            account.publicKey + account.key.pemRepresentation,
        ] {
            let error = await wireError {
                try await bench.service.customTokens.setSigner(.init(email: ServiceAccount.email, publicKey: pem))
            }
            #expect(
                error?.reason == "INVALID_PUBLIC_KEY" && error?.data["parameter"] == "publicKey", "\(pem.prefix(40))")
            #expect(error?.message.contains("MII") == false)
        }
        let both = await wireError {
            try await bench.service.customTokens.setSigner(.init(email: "x", publicKey: "x"))
        }
        #expect(both?.data["problems"]?.array?.count == 2 && both?.reason == "INVALID_EMAIL")
        #expect(try await bench.service.customTokens.signers(.init()).signers.isEmpty)
        // The other form of a public key.
        let signer = try await bench.service.customTokens.setSigner(
            .init(email: ServiceAccount.email, publicKey: account.key.publicKey.pkcs1PEMRepresentation))
        #expect(signer.publicKey == account.publicKey)
    }
}
