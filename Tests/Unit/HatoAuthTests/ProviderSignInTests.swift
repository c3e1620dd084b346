import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// `auth.signInWithProvider`: the user of a provider's ID token signs in, once.
@Suite(.timeLimit(.minutes(10)))
struct ProviderSignInTests {
    private static let masuo = "masuo@example.com"
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func bench(_ change: (inout AuthConfiguration) -> Void = { _ in }) async throws -> AuthBench {
        let bench = try await AuthBench.open(change)
        try await bench.trust(issuer)
        return bench
    }

    @Test func anIdentityMakesOneAccount() async throws {
        let bench = try await bench()
        let first = try await bench.signIn(provider: try bench.token(issuer)) { $0.label = "マスオさんのiPhone" }
        #expect(first.session.isNewUser && !first.linked)
        let account = try await bench.account(first.session)
        #expect(account.email == Self.masuo && account.emailVerified && account.displayName == "フグ田マスオ")
        #expect(account.photoUrl == "https://issuer.example/masuo.png" && account.lastLoginAt == bench.now)
        let info = try #require(account.providerUserInfo.first)
        #expect(account.providerUserInfo.count == 1 && info.providerId == "oidc.work" && info.rawId == "sub-of-masuo")
        #expect(info.email == Self.masuo && info.displayName == "フグ田マスオ")
        let claims = try await bench.claims(first.session.idToken)
        #expect(claims["provider_id"] == nil && claims["email_verified"] == true)
        #expect(claims["firebase"]?["sign_in_provider"] == "oidc.work")
        #expect(claims["firebase"]?["identities"] == ["email": [.string(Self.masuo)], "oidc.work": ["sub-of-masuo"]])
        let second = try await bench.signIn(provider: try bench.token(issuer) { $0["name"] = "ノリスケ" })
        #expect(second.session.uid == first.session.uid && !second.session.isNewUser && !second.linked)
        let again = try await bench.account(second.session)
        #expect(again.displayName == "フグ田マスオ" && again.providerUserInfo.first?.displayName == "ノリスケ")
        let refreshed = try await bench.refresh(second.session.refreshToken)
        #expect(try await bench.claims(refreshed.idToken)["firebase"]?["sign_in_provider"] == "oidc.work")
        let found = try await bench.service.users.user(byIdentity: "oidc.work", "sub-of-masuo")
        #expect(found.uid == first.session.uid)
    }

    /// Apple gives the name to the app alone, and only once.
    @Test func theAppMayNameItsUser() async throws {
        let bench = try await bench()
        let named = try await bench.signIn(provider: try bench.token(issuer) { $0["name"] = nil }) {
            $0.displayName = " マスオさん "
        }
        #expect(try await bench.account(named.session).displayName == "マスオさん")
        let token = try bench.token(issuer, "other") { $0["email"] = nil }
        #expect(await bench.refusal(provider: token) { $0.displayName = "a\nb" } == "INVALID_DISPLAY_NAME")
        #expect(await bench.refusal(provider: token) { $0.label = "" } == "INVALID_LABEL")
        let unnamed = try await bench.signIn(
            provider: try bench.token(issuer, "third") {
                ($0["email"], $0["name"], $0["picture"]) = (nil, "a\nb", "a\nb")
            })
        let account = try await bench.account(unnamed.session)
        #expect(account.displayName == nil && account.photoUrl == nil && account.email == nil)
    }

    @Test func aTokenSignsInOnce() async throws {
        let bench = try await bench()
        let token = try bench.token(issuer)
        let session = try await bench.signIn(provider: token).session
        #expect(await bench.refusal(provider: token) == "MISSING_OR_INVALID_NONCE")
        bench.pass(seconds: 3_599)
        try await UsedProviderTokens.forgetAll(in: bench)
        #expect(await bench.refusal(provider: token) == "MISSING_OR_INVALID_NONCE")
        let reopened = try await AuthBench.open(since: bench)
        #expect(await reopened.refusal(provider: token) == "MISSING_OR_INVALID_NONCE", "after a restart, too")
        bench.pass(seconds: 1)
        #expect(await bench.refusal(provider: token) == "INVALID_IDP_RESPONSE")
        #expect(try await bench.store.read { try UsedProviderTokens.count(in: $0) } == 1)
        bench.pass(seconds: 3_601)
        try await UsedProviderTokens.forgetAll(in: bench)
        #expect(try await bench.store.read { try UsedProviderTokens.count(in: $0) } == 0)
        #expect(try await bench.rows().keys.filter { $0.first == UInt8(ascii: "p") }.isEmpty)
        _ = try await bench.refresh(session.refreshToken)
    }

    /// An ECDSA signature has a second form that others can make of the first.
    @Test func anotherFormOfTheSignatureIsTheSameToken() async throws {
        let bench = try await bench()
        let token = try bench.token(issuer)
        _ = try await bench.signIn(provider: token)
        let parts = token.split(separator: ".")
        let signature = try #require(Base64.url.decode(parts[2].utf8))
        let mirrored = Array(signature[..<32]) + P256Order.minus(Array(signature[32...]))
        let other = "\(parts[0]).\(parts[1]).\(Base64.url.encode(mirrored))"
        #expect(other != token)
        #expect(await bench.refusal(provider: other) == "MISSING_OR_INVALID_NONCE")
    }

    @Test func oneOfManyAtOnceSignsIn() async throws {
        let bench = try await bench()
        let token = try bench.token(issuer)
        let outcomes = await withTaskGroup { group in
            for _ in 0..<50 { group.addTask { await bench.refusal(provider: token) } }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(outcomes.filter { $0 == nil }.count == 1)
        #expect(outcomes.filter { $0 == "MISSING_OR_INVALID_NONCE" }.count == 49)
    }

    @Test func anErrorDoesNotUseUpTheToken() async throws {
        let bench = try await bench { $0.signUp = .closed }
        let token = try bench.token(issuer) { $0["nonce"] = "n" }
        #expect(await bench.refusal(provider: token) == "MISSING_OR_INVALID_NONCE")
        #expect(await bench.refusal(provider: token) { $0.nonce = "m" } == "MISSING_OR_INVALID_NONCE")
        #expect(await bench.refusal(provider: token) { $0.nonce = "n" } == "ADMIN_ONLY_OPERATION")
        var settings = Auth.Settings.Set()
        settings.signUp = .open
        _ = try await bench.service.settings.set(settings)
        #expect(try await bench.signIn(provider: token) { $0.nonce = "n" }.session.isNewUser)
        #expect(await bench.refusal(provider: token) { $0.nonce = "n" } == "MISSING_OR_INVALID_NONCE")
    }

    @Test func usedTokensHaveALimit() async throws {
        let bench = try await bench { $0.limits.usedProviderTokensMax = 2 }
        for sub in ["a", "b"] {
            _ = try await bench.signIn(provider: try bench.token(issuer, sub) { $0["email"] = nil })
        }
        let third = try bench.token(issuer, "a")
        #expect(await bench.refusal(provider: third) == "TOO_MANY_ATTEMPTS_TRY_LATER")
        bench.pass(seconds: 7_201)
        try await UsedProviderTokens.forgetAll(in: bench)
        _ = try await bench.signIn(provider: try bench.token(issuer, "a"))
    }

    // MARK: Refused

    @Test func anUnknownProviderSignsNoUserIn() async throws {
        let bench = try await bench()
        let token = try bench.token(issuer)
        for id in ["google.com", "password", "", "oidc.work ", "../oidc.work"] {
            #expect(await bench.refusal(provider: token, as: id) == "OPERATION_NOT_ALLOWED")
        }
        _ = try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "oidc.work"))
        #expect(await bench.refusal(provider: token) == "OPERATION_NOT_ALLOWED")
        try await bench.trust(issuer, as: "oidc.other")
        #expect(try await bench.signIn(provider: token, as: "oidc.other").session.isNewUser)
    }

    /// A person of one provider is not the person with the same id of another.
    @Test func anIdentityIsOfItsProvider() async throws {
        let bench = try await bench()
        let other = try TestIssuer()
        try await bench.trust(other, as: "oidc.other") { $0.trustsEmail = false }
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        #expect(await bench.refusal(provider: try bench.token(other), as: "oidc.work") == "INVALID_IDP_RESPONSE")
        #expect(await bench.refusal(provider: try bench.token(other), as: "oidc.other") == "EMAIL_EXISTS")
        let stranger = try await bench.signIn(
            provider: try bench.token(other) { $0["email"] = nil }, as: "oidc.other")
        #expect(stranger.session.uid != session.uid)
    }

    @Test func theSignInScreenMakesNoAccount() async throws {
        let bench = try await bench()
        try await bench.trust(issuer) { $0.allowsSignUp = false }
        #expect(await bench.refusal(provider: try bench.token(issuer)) == "ADMIN_ONLY_OPERATION")
        let anonymous = try await bench.anonymous()
        let refused = await bench.refusal(provider: try bench.token(issuer)) { $0.link = anonymous.idToken }
        #expect(refused == "ADMIN_ONLY_OPERATION")
        let known = try await bench.signUp(Self.masuo)
        _ = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = known.idToken }
        #expect(try await bench.signIn(provider: try bench.token(issuer)).session.uid == known.uid)
    }

    @Test func signUpIsForSomeDomainsOnly() async throws {
        let bench = try await bench { $0.emailDomains = ["example.org"] }
        #expect(await bench.refusal(provider: try bench.token(issuer)) == "UNAUTHORIZED_DOMAIN")
        #expect(await bench.refusal(provider: try bench.token(issuer) { $0["email"] = nil }) == "MISSING_EMAIL")
        #expect(
            await bench.refusal(provider: try bench.token(issuer) { $0["email"] = "no address" }) == "INVALID_EMAIL")
        _ = try await bench.signIn(provider: try bench.token(issuer) { $0["email"] = "Masuo@Example.ORG" })
    }

    @Test func aDisabledAccountDoesNotSignIn() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        var update = Auth.Users.Update(uid: session.uid)
        update.disabled = true
        _ = try await bench.service.users.updateUser(update)
        #expect(await bench.refusal(provider: try bench.token(issuer)) == "USER_DISABLED")
        #expect(await bench.refusal(provider: try bench.token(issuer, "another")) == "USER_DISABLED")
    }

    @Test func triesFromOneAddressHaveALimit() async throws {
        let bench = try await bench { $0.limits.signInsPerAddress = RateLimit(burst: 3, perMinute: 1) }
        for _ in 0..<3 {
            let error = await wireError { try await bench.signIn(provider: "a.b.c", from: "192.0.2.1") }
            #expect(error?.reason == "INVALID_IDP_RESPONSE" && error?.code == .unauthenticated)
        }
        let limited = await wireError { try await bench.signIn(provider: "a.b.c", from: "192.0.2.1") }
        #expect(limited?.reason == "TOO_MANY_ATTEMPTS_TRY_LATER")
        let token = try bench.token(issuer)
        _ = try await bench.signIn(provider: token, from: "192.0.2.2")
    }

    @Test func noErrorShowsTheToken() async throws {
        let bench = try await bench()
        let secret = "kid-that-nobody-may-read"
        let token = try issuer.token { $0["kid"] = .string(secret) }
        let error = try #require(await wireError { try await bench.signIn(provider: token) })
        #expect(!"\(error)".contains(secret) && !"\(error)".contains(token.prefix(20)))
    }
}

extension UsedProviderTokens {
    /// What the upkeep does.
    static func forgetAll(in bench: AuthBench) async throws {
        while try await forgetPage(now: bench.now, in: bench.store) {}
    }
}

extension UsersMethods {
    func user(byIdentity provider: String, _ uid: String) async throws -> Auth.Account {
        var request = Auth.Users.Get()
        (request.provider, request.providerUid) = (provider, uid)
        return try await user(request)
    }
}

/// The order of the group of P-256 (FIPS 186-4 D.1.2.3).
private enum P256Order {
    private static let bytes: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6,
        0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
    ]

    /// The order less a number of 32 bytes.
    static func minus(_ number: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: 32)
        var borrow = 0
        for index in (0..<32).reversed() {
            let difference = Int(bytes[index]) - Int(number[index]) - borrow
            borrow = difference < 0 ? 1 : 0
            result[index] = UInt8(difference + borrow * 256)
        }
        return result
    }
}
