import HatoIdentity
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Session cookies, and the keys that verify them for longer than ID tokens.
@Suite(.timeLimit(.minutes(10)))
struct SessionCookieTests {
    private let twoWeeks: Int64 = 1_209_600

    @Test func aCookieHasTheClaimsOfTheIDToken() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        bench.pass(seconds: 60)
        let cookie = try await bench.cookie(session, 300)
        var expected = try await bench.claims(session.idToken)
        expected["iss"] = "https://session.firebase.google.com/hato"
        expected["iat"] = .number(Double(bench.now / 1000))
        expected["exp"] = .number(Double(bench.now / 1000 + 300))
        let claims = try await bench.claims(ofCookie: cookie, checkRevoked: true)
        #expect(claims == expected)
        bench.pass(seconds: 299)
        #expect(try await bench.claims(ofCookie: cookie) == expected)
        bench.pass(seconds: 1)
        #expect(await wireError { try await bench.claims(ofCookie: cookie) }?.reason == "SESSION_COOKIE_EXPIRED")
    }

    @Test func itsTimeHasBounds() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        for seconds in [299, 1_209_601, 0, -1, Int.max, Int.min] {
            let error = await wireError { try await bench.cookie(session, seconds) }
            #expect(error?.reason == "INVALID_DURATION" && error?.data["parameter"] == "validForSeconds")
        }
        let claims = try await bench.claims(ofCookie: try await bench.cookie(session))
        #expect(claims["exp"]?.number == Double(bench.now / 1000 + twoWeeks))
        _ = try await bench.cookie(session, 1_209_600)
    }

    @Test func aTokenThatIsNoneOrOverMakesNoCookie() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        func reason(_ idToken: String, _ seconds: Int? = nil) async -> String? {
            await wireError {
                try await bench.service.cookies.makeCookie(.init(idToken: idToken, validForSeconds: seconds))
            }?.reason
        }
        #expect(await reason("x", 1) == "INVALID_ID_TOKEN")
        #expect(await reason(try await bench.cookie(session)) == "INVALID_ID_TOKEN")
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        #expect(await reason(session.idToken) == "TOKEN_EXPIRED")
        let second = try await bench.signIn()
        _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: second.uid))
        #expect(await reason(second.idToken) == "TOKEN_EXPIRED")
        bench.pass(seconds: 2)
        let third = try await bench.signIn()
        bench.pass(seconds: 3_600)
        #expect(await reason(third.idToken) == "TOKEN_EXPIRED")
        let fourth = try await bench.signIn()
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: fourth.uid))
        #expect(await reason(fourth.idToken) == "USER_NOT_FOUND")
    }

    @Test func revocationIsCheckedOnRequest() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        func reason(_ cookie: String) async -> String? {
            await wireError { try await bench.claims(ofCookie: cookie, checkRevoked: true) }?.reason
        }
        let first = try await bench.cookie(session)
        #expect(await reason(first) == nil)
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        #expect(await reason(first) == "SESSION_COOKIE_REVOKED")
        let second = try await bench.cookie(try await bench.signIn())
        _ = try await bench.service.users.revokeUser(Auth.Users.Revoke(uid: session.uid))
        #expect(await reason(second) == "SESSION_COOKIE_REVOKED")
        bench.pass(seconds: 2)
        let third = try await bench.cookie(try await bench.signIn())
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await reason(third) == "USER_DISABLED")
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        #expect(await reason(third) == "USER_NOT_FOUND")
        for cookie in [first, second, third] { _ = try await bench.claims(ofCookie: cookie) }
    }

    @Test func noByteCanBeChangedAndNoOtherKeySigns() async throws {
        let bench = try await AuthBench.open()
        let cookie = try await bench.cookie(try await bench.signUp())
        func reason(_ text: String) async -> String? {
            await wireError { try await bench.claims(ofCookie: text) }?.reason
        }
        let bytes = Array(cookie.utf8)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(await reason(String(decoding: changed, as: UTF8.self)) == "INVALID_SESSION_COOKIE", "byte \(index)")
        }
        let claims = try await bench.claims(ofCookie: cookie)
        let key = try #require(bench.service.ring.current.key)
        let header: JSONObject = ["alg": "none", "typ": "JWT", "kid": .string(key.kid)]
        for text in [
            "", "x", "..", String(repeating: "a", count: 1 << 20), ServiceAccount.input(header, claims) + ".",
            try SigningKey(kid: key.kid).sign(claims), try SigningKey(kid: "../x").sign(claims),
            try #require(bench.service.ring.next.key).sign(claims), try key.sign(claims, type: "custom+jwt"),
        ] {
            #expect(await reason(text) == "INVALID_SESSION_COOKIE", "\(text.prefix(60))")
        }
        for (name, value) in [
            ("iss", "https://session.firebase.google.com/other"), ("iss", "https://securetoken.google.com/hato"),
            ("aud", "other"), ("sub", ""), ("iat", "1"), ("exp", .null), ("iat", .number(Double(bench.now / 1000 + 6))),
        ] as [(String, JSONValue)] {
            var wrong = claims
            wrong[name] = value
            #expect(await reason(try key.sign(wrong)) == "INVALID_SESSION_COOKIE", "\(name)")
        }
        // A leaked key makes no cookie that is valid for ever.
        var endless = claims
        endless["exp"] = 253_402_300_799
        let forged = try key.sign(endless)
        #expect(await reason(forged) == nil)
        bench.pass(seconds: twoWeeks)
        #expect(await reason(forged) == "SESSION_COOKIE_EXPIRED")
    }

    // MARK: Keys

    @Test func theKeyOfACookieStaysAsLongAsTheCookie() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        let cookie = try await bench.cookie(session)
        let kid = bench.service.ring.current.kid
        _ = try await bench.service.keys.rotateKeys()
        let restarted = try await AuthBench.open(since: bench)
        bench.pass(seconds: twoWeeks - 1)
        // Other rotations do not take it away.
        _ = try await restarted.service.keys.rotateKeys()
        #expect(try await restarted.claims(ofCookie: cookie)["sub"] == .string(session.uid))
        let published = try #require(restarted.service.publishedKeys.first { $0.kid == kid })
        // ID tokens of the key ended an hour after the rotation.
        #expect(try #require(published.exp) < bench.now / 1000 - twoWeeks + 7_200)
        bench.pass(seconds: 86_402)
        #expect(!restarted.service.publishedKeys.map(\.kid).contains(kid))
        #expect(await wireError { try await restarted.claims(ofCookie: cookie) } != nil)
        _ = try await restarted.service.keys.rotateKeys()
        #expect(!restarted.service.ring.records.map(\.kid).contains(kid))
    }

    @Test func aRetiredKeyThatOthersKnowSignsNoIDTokens() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.cookie(session)
        let leaked = try #require(bench.service.ring.current.key)
        let claims = try await bench.claims(session.idToken)
        _ = try await bench.service.keys.rotateKeys()
        bench.pass(seconds: 7_200)
        #expect(bench.service.publishedKeys.map(\.kid).contains(leaked.kid))
        var forged = claims
        forged["iat"] = .number(Double(bench.now / 1000))
        forged["exp"] = .number(Double(bench.now / 1000 + 3600))
        let error = await wireError {
            try await bench.service.authenticator.authenticate(try leaked.sign(forged))
        }
        #expect(error?.reason == "TOKEN_EXPIRED")
    }

    @Test func aKeyThatSignedNoCookieEndsWithItsIDTokens() async throws {
        let bench = try await AuthBench.open()
        let kid = bench.service.ring.current.kid
        _ = try await bench.service.keys.rotateKeys()
        bench.pass(seconds: 3_661)
        #expect(!bench.service.publishedKeys.map(\.kid).contains(kid))
    }

    @Test func revokingAKeyEndsItsCookies() async throws {
        let bench = try await AuthBench.open()
        let cookie = try await bench.cookie(try await bench.signUp())
        let kid = bench.service.ring.current.kid
        _ = try await bench.service.keys.rotateKeys()
        _ = try await bench.claims(ofCookie: cookie)
        _ = try await bench.service.keys.revokeKey(kid)
        #expect(await wireError { try await bench.claims(ofCookie: cookie) }?.reason == "INVALID_SESSION_COOKIE")
        let second = try await bench.cookie(try await bench.signIn())
        _ = try await bench.service.keys.revokeKey(bench.service.ring.current.kid)
        #expect(await wireError { try await bench.claims(ofCookie: second) }?.reason == "INVALID_SESSION_COOKIE")
    }

    @Test func cookiesWriteTheKeyOnceADay() async throws {
        let bench = try await AuthBench.open()
        let session = try await bench.signUp()
        _ = try await bench.cookie(session)
        let version = bench.store.version
        for _ in 0..<10 { _ = try await bench.cookie(session) }
        #expect(bench.store.version == version)
    }
}
