import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.providers.…`, and `auth.signInMethods`.
struct ProviderMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Providers.Set.self, in: &router) { methods, request, _ in try await methods.set(request) }
        handle(Auth.Providers.List.self, in: &router) { methods, _, _ in methods.list() }
        handle(Auth.Providers.Remove.self, in: &router) { methods, request, _ in try await methods.remove(request) }
        handle(Auth.SignInMethods.self, in: &router) { try await $0.signInMethods($1, $2) }
    }

    func set(_ request: Auth.Providers.Set) async throws -> Auth.Providers.Entry {
        let form = ProviderForm(allowsPrivate: configuration.allowsPrivateProviders)
        let record = try await service.providers.set(
            try form.record(request), keepsIdentities: request.keepsIdentities == true)
        environment.logger.notice("set a provider", metadata: ["id": "\(record.id)", "issuer": "\(record.issuer)"])
        return record.entry
    }

    func list() -> Auth.Providers.List.Result {
        Auth.Providers.List.Result(providers: service.providers.all.map(\.entry))
    }

    func remove(_ request: Auth.Providers.Remove) async throws -> Empty {
        try await service.providers.remove(request.id)
        environment.logger.notice("removed a provider", metadata: ["id": "\(request.id)"])
        return Empty()
    }

    /// The same for every address where the existence of accounts is hidden.
    func signInMethods(_ request: Auth.SignInMethods, _ origin: CallOrigin) async throws -> Auth.SignInMethods.Result {
        let email: String
        do { email = try AccountFormPolicy(configuration, takesStored: true).email(request.email) } catch {
            throw AuthError.invalidFields([error])
        }
        try attempts.admit(.signIn, from: origin.address)
        guard !configuration.hidesWhoExists else { return Auth.SignInMethods.Result(registered: false, methods: []) }
        let account = try await store.read { try AccountRows.find(.email(email), in: $0) }
        return Auth.SignInMethods.Result(registered: account != nil, methods: account?.signInMethods ?? [])
    }
}

extension AccountRecord {
    /// As Firebase names them.
    fileprivate var signInMethods: [String] {
        (passwordHash != nil ? ["password"] : []) + (signsInWithCode && email != nil ? ["emailLink"] : [])
            + identities.map(\.provider)
    }
}
