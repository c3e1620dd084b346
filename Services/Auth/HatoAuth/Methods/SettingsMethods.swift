import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.settings.get` and `auth.settings.set`.
struct SettingsMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Settings.Get.self, in: &router) { methods, _, origin in methods.settings(origin) }
        handle(Auth.Settings.Set.self, in: &router) { methods, request, _ in try await methods.set(request) }
    }

    func settings(_ origin: CallOrigin) -> Auth.Settings {
        guard case .administrator = origin.caller else { return publicSettings }
        return allSettings
    }

    /// Durable before it is in effect.
    func set(_ request: Auth.Settings.Set) async throws -> Auth.Settings {
        if request.signUpAlwaysAccepts == true, service.mail == nil { throw AuthError.mailNotConfigured }
        let names = request.members.members.map(\.name).joined(separator: ", ")
        let committed = try await service.write { rows in
            let settings = try StoredSettings.find(in: rows).changed(by: request)
            settings.put(in: rows)
            rows.audit(.settingsChanged, reason: names)
            return settings
        }
        service.take(committed.outcome, version: committed.version)
        environment.logger.notice("changed settings", metadata: ["names": "\(names)"])
        return allSettings
    }

    private var publicSettings: Auth.Settings {
        let configuration = configuration
        var settings = Auth.Settings(
            signUp: configuration.signUp, anonymous: configuration.allowsAnonymous,
            passwordSignIn: configuration.allowsPasswordSignIn, passwordLengthMin: configuration.passwordLengthMin)
        settings.codeSignIn = configuration.allowsCodeSignIn
        settings.continueDomains = configuration.continueDomains
        settings.providers = service.providers.ids
        return settings
    }

    private var allSettings: Auth.Settings {
        let configuration = configuration
        var settings = publicSettings
        settings.emailDomains = configuration.emailDomains
        settings.hidesWhoExists = configuration.hidesWhoExists
        settings.signUpAlwaysAccepts = configuration.signUpAlwaysAccepts
        settings.recentSignInSeconds = configuration.credentialAgeSecondsMax
        settings.fixed = configuration.fixedSettings.sorted()
        return settings
    }
}
