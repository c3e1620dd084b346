import HatoModel
import HatoRPC
import Testing

@testable import HatoAuth

extension AuthBench {
    /// Sets a provider with the keys of an issuer.
    @discardableResult
    func trust(
        _ issuer: TestIssuer, as id: String = "oidc.work",
        _ change: (inout Auth.Providers.Set) -> Void = { _ in }
    ) async throws -> Auth.Providers.Entry {
        var request = Auth.Providers.Set(id: id, clientIds: [TestIssuer.clientId])
        request.issuer = TestIssuer.url
        request.jwks = try issuer.jwks()
        request.trustsEmail = true
        request.allowsSignUp = true
        change(&request)
        return try await service.providerMethods.set(request)
    }

    func signIn(
        provider token: String, as id: String = "oidc.work", from address: String? = nil,
        _ change: (inout Auth.SignInWithProvider) -> Void = { _ in }
    ) async throws -> Auth.SignInWithProvider.Result {
        var request = Auth.SignInWithProvider(provider: id, idToken: token)
        change(&request)
        return try await service.providerSignIns.signIn(
            request, CallOrigin(address: address.map { ClientAddress($0) }))
    }

    /// What a sign-in is refused with.
    func refusal(
        provider token: String, as id: String = "oidc.work",
        _ change: (inout Auth.SignInWithProvider) -> Void = { _ in }
    ) async -> String? {
        await wireError { try await signIn(provider: token, as: id, change) }?.reason
    }

    /// A token that no other is equal to, as issued now.
    func token(
        _ issuer: TestIssuer, _ sub: String = "sub-of-masuo", _ change: (inout JSONObject) -> Void = { _ in }
    ) throws -> String {
        try issuer.token(
            TestIssuer.claims(sub) { claims in
                claims["iat"] = .number(Double(now / 1000))
                claims["exp"] = .number(Double(now / 1000 + 3_600))
                claims["jti"] = .string("\(UInt64.random(in: .min ... .max))")
                change(&claims)
            })
    }
}

extension AuthService {
    var providerMethods: ProviderMethods { ProviderMethods(service: self) }
    var providerSignIns: SignInWithProviderMethod { SignInWithProviderMethod(service: self) }
}
