import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.signInWithProvider`: a session for the user of a provider's ID token.
struct SignInWithProviderMethod: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.SignInWithProvider.self, in: &router) { try await $0.signIn($1, $2) }
    }

    func signIn(
        _ request: Auth.SignInWithProvider, _ origin: CallOrigin
    ) async throws -> Auth.SignInWithProvider.Result {
        let newSession = try service.newSession(request.label, origin)
        let name = try AccountFormPolicy(configuration).check(AccountForm(displayName: request.displayName)).displayName
        let own = try request.link.map { try service.user(of: $0) }
        guard own != nil || request.linkOnly != true else {
            throw AuthError.invalidFields([
                FieldProblem("linkOnly", "INVALID_REQ_TYPE", "linkOnly needs link, one's own ID token")
            ])
        }
        do {
            try attempts.admit(.signIn, from: origin.address)
            let identity = try await service.providers.identity(
                request.provider, request.idToken, nonce: request.nonce)
            var signIn = ProviderSignIn(service, identity, newSession)
            signIn.own = own
            signIn.linkOnly = request.linkOnly == true
            signIn.displayName = name
            signIn.address = origin.address
            let outcome = try await service.write { [signIn] rows in try signIn.run(in: rows) }.outcome
            metrics.count(.providerSignIn)
            if outcome.isNewUser { metrics.count(.signedUp) }
            return Auth.SignInWithProvider.Result(
                session: try service.session(outcome.granted, newSession.token, isNewUser: outcome.isNewUser),
                linked: outcome.linked)
        } catch let error as AuthError {
            metrics.count(.providerSignInRefused)
            service.auditWriter.signInFailed(error)
            if case .invalidProviderToken(let why) = error { service.providers.note(why, of: request.provider) }
            throw error
        }
    }
}
