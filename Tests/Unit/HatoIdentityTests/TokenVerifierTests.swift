import Crypto
import HatoIdentity
import HatoModel
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private let now: Int64 = 1_795_000_000_000

private func claims(_ change: (inout JSONObject) -> Void = { _ in }) -> JSONObject {
    var claims: JSONObject = [
        "iss": "https://securetoken.google.com/hato", "aud": "hato", "sub": "masuo", "user_id": "masuo",
        "iat": .number(Double(now / 1000)), "exp": .number(Double(now / 1000 + 3600)),
    ]
    change(&claims)
    return claims
}

/// A JWT with any header, and any signature or none.
private func token(header: JSONObject, _ claims: JSONObject, sign: ([UInt8]) throws -> [UInt8]) rethrows -> String {
    let input =
        Base64.url.encode(JSONValue.object(header).encoded) + "." + Base64.url.encode(JSONValue.object(claims).encoded)
    return input + "." + Base64.url.encode(try sign(Array(input.utf8)))
}

struct TokenVerifierTests {
    private let key = SigningKey(kid: "k1")
    private var verifier: TokenVerifier {
        TokenVerifier(configuration: IdentityConfiguration(), keys: [key.verificationKey])
    }

    private func error(of token: String, at time: Int64 = now) -> TokenError? {
        do {
            _ = try verifier.verify(token, now: time)
            return nil
        } catch {
            return error
        }
    }

    @Test func signedTokenIsVerified() throws {
        let verified = try verifier.verify(try key.sign(claims { $0["staff"] = true }), now: now)
        #expect(verified.uid == "masuo")
        #expect(verified.claims["staff"] == true)
        #expect(verified.caller.expiresAt == now + 3_600_000)
    }

    /// A key that has leaked signs any time of expiry.
    @Test func tokenIsValidForADayAtMostWhateverItSays() throws {
        for lifetime in [86_399, 86_400, 86_401, 250_000_000_000] as [Int64] {
            let token = try key.sign(claims { $0["exp"] = .number(Double(now / 1000 + lifetime)) })
            let verified = try verifier.verify(token, now: now)
            #expect(verified.caller.expiresAt == now + min(lifetime, 86_400) * 1000)
            #expect(error(of: token, at: now + 86_400_000) == .expired)
        }
    }

    @Test func algorithmNoneIsRefused() throws {
        for algorithm in ["none", "None", "NONE", "nOnE"] {
            let forged = token(header: ["alg": .string(algorithm), "kid": "k1", "typ": "JWT"], claims()) { _ in [] }
            #expect(error(of: forged) == .unsupportedAlgorithm)
        }
        let headless = token(header: ["kid": "k1"], claims()) { _ in [] }
        #expect(error(of: headless) == .unsupportedAlgorithm)
    }

    @Test func publicKeyUsedAsSecretOfHS256IsRefused() throws {
        let jwk = key.verificationKey.jwk
        let point = try #require(Base64.url.decode(jwk.x.utf8)) + (try #require(Base64.url.decode(jwk.y.utf8)))
        for secret in [point, [4] + point, JSONValue.object(["x": .string(jwk.x)]).encoded] {
            let forged = token(header: ["alg": "HS256", "kid": "k1", "typ": "JWT"], claims()) { input in
                Array(HMAC<SHA256>.authenticationCode(for: input, using: SymmetricKey(data: secret)))
            }
            #expect(error(of: forged) == .unsupportedAlgorithm)
        }
    }

    @Test func macBesideTheRightAlgorithmNameIsRefused() {
        let forged = token(header: ["alg": "ES256", "kid": "k1"], claims()) { input in
            Array(HMAC<SHA512>.authenticationCode(for: input, using: SymmetricKey(data: [1, 2, 3])))
        }
        #expect(error(of: forged) == .badSignature)
    }

    @Test func unknownOrMissingKeyIdIsRefusedAlsoWithOneKeyOnly() throws {
        let stranger = SigningKey(kid: "k2")
        #expect(error(of: try stranger.sign(claims())) == .unknownKey("k2"))
        let anonymous = token(header: ["alg": "ES256"], claims()) { _ in [UInt8](repeating: 1, count: 64) }
        #expect(error(of: anonymous) == .unknownKey(""))
    }

    @Test func anotherKeyUnderAKnownIdIsRefused() throws {
        #expect(error(of: try SigningKey(kid: "k1").sign(claims())) == .badSignature)
    }

    @Test func everyChangedByteIsNoticed() throws {
        let genuine = Array(try key.sign(claims()).utf8)
        for index in genuine.indices {
            var changed = genuine
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(error(of: String(decoding: changed, as: UTF8.self)) != nil, "byte \(index)")
        }
    }

    @Test func textsThatAreNoTokenAreMalformed() {
        for text in ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "%.%.%", String(repeating: "a", count: 100_000)] {
            #expect(error(of: text) != nil, "\(text.prefix(20))")
        }
        #expect(error(of: String(repeating: "a", count: 100_000)) == .malformed)
    }

    @Test func criticalExtensionsAndEmbeddedKeysDoNotHelp() throws {
        let stranger = SigningKey(kid: "k1")
        let jwk = stranger.verificationKey.jwk
        let embedded: JSONObject = [
            "alg": "ES256", "kid": "k1",
            "jwk": ["kty": "EC", "crv": "P-256", "x": .string(jwk.x), "y": .string(jwk.y)],
        ]
        let raw = try P256.Signing.PrivateKey(rawRepresentation: stranger.rawRepresentation)
        let forged = try token(header: embedded, claims()) { Array(try raw.signature(for: $0).rawRepresentation) }
        #expect(error(of: forged) == .badSignature)

        let own = try P256.Signing.PrivateKey(rawRepresentation: key.rawRepresentation)
        let critical = try token(header: ["alg": "ES256", "kid": "k1", "crit": ["exp"]], claims()) {
            Array(try own.signature(for: $0).rawRepresentation)
        }
        #expect(error(of: critical) == .malformed)
    }

    @Test func tokenEndsAtItsSecondAndNotLater() throws {
        let token = try key.sign(claims())
        #expect(error(of: token, at: now + 3_599_999) == nil)
        #expect(error(of: token, at: now + 3_600_000) == .expired)
    }

    @Test func tokenFromTheFutureIsRefusedBeyondTheLeeway() throws {
        let token = try key.sign(claims())
        #expect(error(of: token, at: now - 5_000) == nil)
        #expect(error(of: token, at: now - 6_000) == .notYetValid)
        let later = try key.sign(claims { $0["nbf"] = .number(Double(now / 1000 + 60)) })
        #expect(error(of: later) == .notYetValid)
    }

    @Test func tokenOfAnotherProjectIsRefused() throws {
        #expect(error(of: try key.sign(claims { $0["aud"] = "other" })) == .wrongAudience)
        #expect(error(of: try key.sign(claims { $0["aud"] = ["hato"] })) == .wrongAudience)
        #expect(error(of: try key.sign(claims { $0["iss"] = "https://securetoken.google.com/other" })) == .wrongIssuer)
    }

    @Test func claimsOfTheWrongKindAreRefused() throws {
        #expect(error(of: try key.sign(claims { $0["sub"] = nil })) == .badClaim("sub"))
        #expect(error(of: try key.sign(claims { $0["sub"] = "" })) == .badClaim("sub"))
        #expect(error(of: try key.sign(claims { $0["sub"] = 7 })) == .badClaim("sub"))
        #expect(error(of: try key.sign(claims { $0["exp"] = "9999999999" })) == .badClaim("exp"))
        #expect(error(of: try key.sign(claims { $0["exp"] = 1e300 })) == .badClaim("exp"))
        #expect(error(of: try key.sign(claims { $0["iat"] = nil })) == .badClaim("iat"))
    }

    @Test func onlyES256KeysAreTakenFromAKeySet() {
        var jwk = key.verificationKey.jwk
        #expect(VerificationKey(jwk)?.jwk == jwk)
        jwk.alg = "HS256"
        #expect(VerificationKey(jwk) == nil)
        jwk = key.verificationKey.jwk
        jwk.kty = "oct"
        #expect(VerificationKey(jwk) == nil)
        jwk = key.verificationKey.jwk
        jwk.y = jwk.x
        #expect(VerificationKey(jwk) == nil)
    }

    @Test func base64URLReadsExactlyWhatItWrites() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }
            #expect(Base64.url.decode(Base64.url.encode(bytes).utf8) == bytes)
        }
        for text in ["A", "AB", "AA==", "A+/A", "AAA ", "AAB"] {
            #expect(Base64.url.decode(text.utf8) == nil, "\(text)")
        }
        #expect(Base64.url.decode("AA".utf8) == [0])
    }
}
