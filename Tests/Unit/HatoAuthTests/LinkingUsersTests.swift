import HatoModel
import Testing

@testable import HatoAuth

/// Identities that administrators link (spec auth §5, `linkProviderUserInfo`).
@Suite(.timeLimit(.minutes(10)))
struct LinkingUsersTests {
    private func link(_ bench: AuthBench, _ uid: String, _ provider: String, _ rawId: String) async throws
        -> Auth.Account
    {
        var request = Auth.Users.Update(uid: uid)
        request.linkProviderUserInfo = Auth.Account.Provider(providerId: provider, rawId: rawId)
        return try await bench.service.users.updateUser(request)
    }

    private func refusal(_ bench: AuthBench, _ uid: String, _ provider: String, _ rawId: String) async -> String? {
        let error = await wireError { try await link(bench, uid, provider, rawId) }
        #expect(error == nil || error?.data["parameter"] == "linkProviderUserInfo")
        return error?.reason
    }

    @Test func aLinkedIdentitySignsIn() async throws {
        let bench = try await AuthBench.open()
        let issuer = try TestIssuer()
        try await bench.trust(issuer) { $0.allowsSignUp = false }
        let session = try await bench.signUp("sazae@example.com")
        let token = try bench.token(issuer)
        #expect(await bench.refusal(provider: token) == "ADMIN_ONLY_OPERATION")
        let account = try await link(bench, session.uid, "oidc.work", "sub-of-masuo")
        #expect(account.providerUserInfo.map(\.providerId) == ["password", "oidc.work"])
        #expect(try await bench.signIn(provider: token).session.uid == session.uid)
        _ = try await bench.refresh(session.refreshToken)
        // Once more is no error.
        _ = try await link(bench, session.uid, "oidc.work", "sub-of-masuo")
        #expect(try await bench.account(session).providerUserInfo.count == 2)
    }

    @Test func anIdentityIsOfOneAccountAndAnAccountHasOneOfAProvider() async throws {
        let bench = try await AuthBench.open()
        let masuo = try await bench.signUp()
        let sazae = try await bench.signUp("sazae@example.com")
        _ = try await link(bench, masuo.uid, "google.com", "1")
        #expect(await refusal(bench, sazae.uid, "google.com", "1") == "FEDERATED_USER_ID_ALREADY_LINKED")
        #expect(await refusal(bench, masuo.uid, "google.com", "2") == "PROVIDER_ALREADY_LINKED")
        for (provider, rawId) in [
            ("password", "1"), ("phone", "1"), ("google", "1"), ("google.com", ""), ("a.b", "\0"),
        ] {
            #expect(await refusal(bench, sazae.uid, provider, rawId) == "INVALID_PROVIDER_ID", "\(provider)")
        }
        var both = Auth.Users.Update(uid: masuo.uid)
        both.linkProviderUserInfo = Auth.Account.Provider(providerId: "google.com", rawId: "2")
        both.deleteProviders = ["google.com"]
        #expect(await wireError { try await bench.service.users.updateUser(both) }?.reason == "INVALID_REQ_TYPE")
        #expect(await wireError { try await link(bench, "nobody", "google.com", "3") }?.reason == "USER_NOT_FOUND")
        #expect(try await bench.service.users.user(byIdentity: "google.com", "1").uid == masuo.uid)
        for number in 0..<LinkedIdentity.countMax { _ = try await link(bench, sazae.uid, "oidc.n\(number)", "1") }
        #expect(await refusal(bench, sazae.uid, "oidc.last", "1") == "INVALID_PROVIDER_ID")
    }
}
