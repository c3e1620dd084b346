import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Which account an identity of a provider is linked to (spec auth §9, "Account linking").
@Suite(.timeLimit(.minutes(10)))
struct ProviderLinkTests {
    private static let masuo = "masuo@example.com"
    private let issuer: TestIssuer

    init() throws { issuer = try TestIssuer() }

    private func bench(_ change: (inout Auth.Providers.Set) -> Void = { _ in }) async throws -> AuthBench {
        let bench = try await AuthBench.open()
        try await bench.trust(issuer, change)
        return bench
    }

    private func verify(_ bench: AuthBench) async throws {
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
    }

    private func update(
        _ bench: AuthBench, _ session: Auth.Session, _ change: (inout Auth.Account.Update) -> Void
    ) async throws -> Auth.Account.Update.Result {
        var request = Auth.Account.Update()
        change(&request)
        return try await bench.service.accounts.updateAccount(request, try await bench.origin(session))
    }

    // MARK: With one's own account

    @Test func anAnonymousAccountKeepsItsUid() async throws {
        let bench = try await bench()
        let anonymous = try await bench.anonymous()
        let result = try await bench.signIn(provider: try bench.token(issuer)) {
            ($0.link, $0.displayName) = (anonymous.idToken, "マスオさん")
        }
        #expect(result.session.uid == anonymous.uid && result.linked && !result.session.isNewUser)
        let account = try await bench.account(result.session)
        #expect(account.email == Self.masuo && account.emailVerified && account.displayName == "マスオさん")
        let claims = try await bench.claims(result.session.idToken)
        #expect(claims["provider_id"] == nil && claims["firebase"]?["sign_in_provider"] == "oidc.work")
        #expect(await wireError { try await bench.refresh(anonymous.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(anonymous) }?.reason == "TOKEN_EXPIRED")
        bench.pass(seconds: 2)
        #expect(try await bench.signIn(provider: try bench.token(issuer)).session.uid == anonymous.uid)
    }

    @Test func anIdentityIsLinkedToTheAccountOfItsUser() async throws {
        let bench = try await bench()
        let session = try await bench.signUp("sazae@example.com")
        let result = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = session.idToken }
        #expect(result.session.uid == session.uid && result.linked)
        _ = try await bench.refresh(session.refreshToken)
        let account = try await bench.account(result.session)
        #expect(account.email == "sazae@example.com" && !account.emailVerified)
        #expect(account.providerUserInfo.map(\.providerId) == ["password", "oidc.work"])
        let again = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = result.session.idToken }
        #expect(again.session.uid == session.uid && again.linked)
        _ = try await bench.signIn("sazae@example.com")
    }

    /// Apple shows its sheet once: one call links or signs in.
    @Test func anIdentityWithAnAccountSignsInThere() async throws {
        let bench = try await bench()
        let known = try await bench.signIn(provider: try bench.token(issuer)).session
        let anonymous = try await bench.anonymous()
        let token = try bench.token(issuer)
        let refused = await wireError {
            try await bench.signIn(provider: token) { ($0.link, $0.linkOnly) = (anonymous.idToken, true) }
        }
        #expect(refused?.reason == "FEDERATED_USER_ID_ALREADY_LINKED" && refused?.code == .alreadyExists)
        let result = try await bench.signIn(provider: token) { $0.link = anonymous.idToken }
        #expect(result.session.uid == known.uid && !result.linked, "the token was good after the refusal")
        #expect(try await bench.account(anonymous).providerUserInfo.isEmpty, "it is as it was")
        #expect(await bench.refusal(provider: try bench.token(issuer)) { $0.linkOnly = true } == "INVALID_REQ_TYPE")
    }

    @Test func linkingNeedsARecentSignIn() async throws {
        let bench = try await bench()
        let session = try await bench.signUp("sazae@example.com")
        let anonymous = try await bench.anonymous()
        bench.pass(seconds: 301)
        let token = try bench.token(issuer)
        #expect(await bench.refusal(provider: token) { $0.link = session.idToken } == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        #expect(try await bench.signIn(provider: token) { $0.link = anonymous.idToken }.linked)
    }

    @Test func noOtherTokenLinks() async throws {
        let bench = try await bench()
        let session = try await bench.signUp("sazae@example.com")
        let token = try bench.token(issuer)
        for link in ["", "a.b.c", token, session.refreshToken, session.idToken + "A"] {
            #expect(await bench.refusal(provider: token) { $0.link = link } == "INVALID_ID_TOKEN", "\(link.prefix(9))")
        }
        _ = try await bench.service.sessions.signOut(Auth.SignOut(refreshToken: session.refreshToken))
        #expect(await bench.refusal(provider: token) { $0.link = session.idToken } == "TOKEN_EXPIRED")
        _ = try await bench.service.users.deleteUser(Auth.Users.Delete(uid: session.uid))
        #expect(await bench.refusal(provider: token) { $0.link = session.idToken } == "USER_NOT_FOUND")
    }

    @Test func anAccountHasOneIdentityOfAProvider() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        let second = try bench.token(issuer, "another") { $0["email"] = nil }
        #expect(await bench.refusal(provider: second) { $0.link = session.idToken } == "PROVIDER_ALREADY_LINKED")
        #expect(try await bench.signIn(provider: second).session.isNewUser)
    }

    @Test func anAnonymousAccountDoesNotGetATakenAddress() async throws {
        let bench = try await bench()
        let owner = try await bench.signUp(Self.masuo)
        try await verify(bench)
        let anonymous = try await bench.anonymous()
        let token = try bench.token(issuer)
        #expect(await bench.refusal(provider: token) { $0.link = anonymous.idToken } == "EMAIL_EXISTS")
        let result = try await bench.signIn(provider: token)
        #expect(result.session.uid == owner.uid && result.linked)
    }

    // MARK: By the address

    @Test func aVerifiedAddressOfATrustedProviderLinks() async throws {
        let bench = try await bench()
        let session = try await bench.signUp(Self.masuo)
        try await verify(bench)
        let result = try await bench.signIn(provider: try bench.token(issuer) { $0["email"] = "Masuo@Example.COM" })
        #expect(result.session.uid == session.uid && result.linked && !result.session.isNewUser)
        _ = try await bench.refresh(session.refreshToken)
        _ = try await bench.signIn(Self.masuo)
        #expect(try await bench.signIn(provider: try bench.token(issuer)).linked == false)
    }

    /// The attack: an account with the address of another person, made before that person comes.
    @Test func thePersonThatSignedUpWithTheAddressOfAnotherIsOut() async throws {
        let bench = try await bench()
        let thiefs = try TestIssuer()
        try await bench.trust(thiefs, as: "oidc.thief") { $0.trustsEmail = false }
        let thief = try await bench.signUp(Self.masuo, "password-of-a-thief", username: "thief")
        let linked = try bench.token(thiefs, "thief") { $0["email"] = nil }
        _ = try await bench.signIn(provider: linked, as: "oidc.thief") { $0.link = thief.idToken }
        bench.pass(seconds: 1)
        let owner = try await bench.signIn(provider: try bench.token(issuer))
        #expect(owner.session.uid == thief.uid && owner.linked)
        #expect(await wireError { try await bench.refresh(thief.refreshToken) }?.reason == "TOKEN_EXPIRED")
        #expect(await wireError { try await bench.account(thief) }?.reason == "TOKEN_EXPIRED", "its ID token, too")
        for name in [(Self.masuo, nil), (nil, "thief")] as [(String?, String?)] {
            let error = await wireError { try await bench.signIn(name.0, "password-of-a-thief", username: name.1) }
            #expect(error?.reason == "INVALID_LOGIN_CREDENTIALS")
        }
        let other = try bench.token(thiefs, "thief") { $0["email"] = nil }
        #expect(try await bench.signIn(provider: other, as: "oidc.thief").session.uid != thief.uid)
        let account = try await bench.account(owner.session)
        #expect(account.emailVerified && account.passwordUpdatedAt == nil)
        #expect(account.providerUserInfo.map(\.providerId) == ["oidc.work"])
        _ = try await bench.refresh(owner.session.refreshToken)
    }

    @Test func otherAddressesLinkNothing() async throws {
        let bench = try await bench()
        _ = try await bench.signUp(Self.masuo)
        try await verify(bench)
        for value: JSONValue? in [nil, false, "false", 1] {
            #expect(
                await bench.refusal(provider: try bench.token(issuer) { $0["email_verified"] = value })
                    == "EMAIL_EXISTS")
        }
        try await bench.trust(issuer) { $0.trustsEmail = false }
        #expect(await bench.refusal(provider: try bench.token(issuer)) == "EMAIL_EXISTS")
        #expect(try await bench.service.users.user(Auth.Users.Get(email: Self.masuo)).providerUserInfo.count == 1)
        let made = try await bench.signIn(provider: try bench.token(issuer) { $0["email"] = "namihei@example.com" })
        #expect(try await bench.account(made.session).emailVerified == false)
    }

    /// Lower case makes a k of the sign of the Kelvin: for some servers that is another mailbox.
    @Test func anAddressInOtherLettersIsNotProved() async throws {
        let bench = try await bench()
        _ = try await bench.signUp("ken@example.com")
        let token = try bench.token(issuer) { $0["email"] = "\u{212A}en@example.com" }
        #expect(await bench.refusal(provider: token) == "EMAIL_EXISTS")
        let punycode = try bench.token(issuer) { $0["email"] = "masuo@xn--r8jz45g.jp" }
        let account = try await bench.account(try await bench.signIn(provider: punycode).session)
        #expect(account.email == "masuo@例え.jp" && account.emailVerified)
    }

    /// A provider may give an address to another user.
    @Test func anAddressThatAnotherUserOfTheProviderHadLinksNothing() async throws {
        let bench = try await bench()
        _ = try await bench.signIn(provider: try bench.token(issuer))
        #expect(await bench.refusal(provider: try bench.token(issuer, "the-next")) == "EMAIL_EXISTS")
    }

    @Test func anInvitedPersonSignsInWithAProvider() async throws {
        let bench = try await bench()
        var invite = Auth.Users.Invite(email: Self.masuo)
        invite.returnCode = true
        let invited = try await InviteMethod(service: bench.service).invite(invite)
        var settings = Auth.Settings.Set()
        settings.signUp = .invited
        _ = try await bench.service.settings.set(settings)
        #expect(try await bench.signIn(provider: try bench.token(issuer)).session.uid == invited.uid)
        let stranger = try bench.token(issuer, "stranger") { $0["email"] = "stranger@example.com" }
        #expect(await bench.refusal(provider: stranger) == "ADMIN_ONLY_OPERATION")
    }

    // MARK: Unlinking

    @Test func theLastWayInStays() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        let last = await wireError { try await update(bench, session) { $0.deleteProviders = ["oidc.work"] } }
        #expect(last?.reason == "LAST_SIGN_IN_METHOD" && last?.code == .failedPrecondition)
        let set = try await update(bench, session) { $0.password = AuthBench.password }
        bench.pass(seconds: 2)
        let second = try await bench.signIn(Self.masuo)
        #expect(try await bench.claims(set.idToken)["firebase"]?["sign_in_provider"] == "oidc.work")
        let unlinked = try await update(bench, second) { $0.deleteProviders = ["oidc.work", "google.com"] }
        #expect(unlinked.account.providerUserInfo.map(\.providerId) == ["password"])
        #expect(try await bench.claims(unlinked.idToken)["firebase"]?["identities"]?["oidc.work"] == nil)
        let gone = await wireError {
            try await bench.service.users.user(byIdentity: "oidc.work", "sub-of-masuo")
        }
        #expect(gone?.reason == "USER_NOT_FOUND")
    }

    @Test func aProviderThatIsNotSetIsNoWayIn() async throws {
        let bench = try await bench()
        let other = try TestIssuer()
        try await bench.trust(other, as: "oidc.other")
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        let token = try bench.token(other) { $0["email"] = nil }
        _ = try await bench.signIn(provider: token, as: "oidc.other") { $0.link = session.idToken }
        _ = try await bench.service.providerMethods.remove(Auth.Providers.Remove(id: "oidc.other"))
        let last = await wireError { try await update(bench, session) { $0.deleteProviders = ["oidc.work"] } }
        #expect(last?.reason == "LAST_SIGN_IN_METHOD")
        _ = try await update(bench, session) { $0.deleteProviders = ["oidc.other"] }
    }

    @Test func aWayThatIsTurnedOffIsNone() async throws {
        let bench = try await bench()
        let session = try await bench.signUp("sazae@example.com")
        _ = try await bench.signIn(provider: try bench.token(issuer)) { $0.link = session.idToken }
        var settings = Auth.Settings.Set()
        settings.passwordSignIn = false
        _ = try await bench.service.settings.set(settings)
        let last = await wireError { try await update(bench, session) { $0.deleteProviders = ["oidc.work"] } }
        #expect(last?.reason == "LAST_SIGN_IN_METHOD")
        // What is no way now may go.
        let left = try await update(bench, session) { $0.deleteAttributes = [.password] }
        #expect(left.account.providerUserInfo.map(\.providerId) == ["oidc.work"])
    }

    @Test func unlinkingNeedsARecentSignIn() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        bench.pass(seconds: 301)
        let error = await wireError { try await update(bench, session) { $0.deleteProviders = ["oidc.work"] } }
        #expect(error?.reason == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        var admin = Auth.Users.Update(uid: session.uid)
        admin.deleteProviders = ["oidc.work"]
        #expect(try await bench.service.users.updateUser(admin).providerUserInfo.isEmpty)
    }

    /// What one does after a thief was there.
    @Test func aNewPasswordByMailUnlinks() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        bench.pass(seconds: 60)
        let code = try #require(try await bench.code(.passwordReset).code)
        _ = try await bench.apply(code, newPassword: AuthBench.password)
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.providerUserInfo.map(\.providerId) == ["password"])
    }

    @Test func passwordIsAProviderToDelete() async throws {
        let bench = try await bench()
        let session = try await bench.signUp()
        let last = await wireError { try await update(bench, session) { $0.deleteProviders = ["password"] } }
        #expect(last?.reason == "LAST_SIGN_IN_METHOD")
        var admin = Auth.Users.Update(uid: session.uid)
        admin.deleteProviders = ["password"]
        #expect(try await bench.service.users.updateUser(admin).providerUserInfo.isEmpty)
        #expect(await wireError { try await bench.signIn() }?.reason == "INVALID_LOGIN_CREDENTIALS")
    }

    @Test func aDeletedAccountLeavesNoLink() async throws {
        let bench = try await bench()
        let session = try await bench.signIn(provider: try bench.token(issuer)).session
        _ = try await bench.service.accounts.deleteAccount(try await bench.origin(session))
        #expect(try await bench.rows().keys.filter { $0.first == UInt8(ascii: "l") }.isEmpty)
        bench.pass(seconds: 2)
        let next = try await bench.signIn(provider: try bench.token(issuer))
        #expect(next.session.isNewUser && next.session.uid != session.uid)
    }
}
