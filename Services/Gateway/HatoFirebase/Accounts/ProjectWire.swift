import HatoModel

/// What clients read of the project, its public keys, and its configuration (spec auth §3-§5, §8).
struct ProjectWire: Sendable {
    private let wire: AccountWire

    private var context: AccountContext { wire.context }

    init(_ wire: AccountWire) { self.wire = wire }

    /// An operation without body. Throws `AuthFault` for those that have nothing to show.
    func document(_ operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        switch operation {
        case .projectConfig: return projectConfig()
        case .passwordPolicy: return passwordPolicy()
        case .recaptchaConfig:
            // An absent key makes the JS SDK fail.
            return immediate(["recaptchaKey": "", "recaptchaEnforcementState": []])
        case .recaptchaParams:
            return immediate([
                "kind": "identitytoolkit#GetRecaptchaParamResponse", "recaptchaEnforcementState": [],
            ])
        case .keys:
            return OneCall(Auth.Keys()) { (result) throws(AuthFault) in
                Self.published(result.members)
            }
        case .openIDConfiguration: return Immediate(response: Self.published(openIDConfiguration))
        case .emulatorReady: return immediate(["authEmulator": ["ready": true]])
        case .emulatorOobCodes: return immediate(["oobCodes": context.codes.json])
        case .emulatorVerificationCodes: return immediate(["verificationCodes": []])
        case .emulatorConfig:
            return OneCall(Auth.Settings.Get(), .gateway) { (settings) throws(AuthFault) in
                AccountResponse(Self.emulatorConfig(settings))
            }
        case .config:
            let name = configName
            return OneCall(Auth.Settings.Get(), wire.caller.identity) { (settings) throws(AuthFault) in
                // Every caller may read the others: this one is no administrator.
                guard settings.hidesWhoExists != nil else { throw .notAllowed }
                return AccountResponse(Self.config(settings, name: name))
            }
        default: throw .noCertificates
        }
    }

    private func immediate(_ members: JSONObject) -> any AccountWork { Immediate(response: AccountResponse(members)) }

    // MARK: Documents

    private func projectConfig() -> any AccountWork {
        let number = context.projectNumber
        return OneCall(Auth.Settings.Get()) { (settings) throws(AuthFault) in
            AccountResponse([
                "projectId": .string(number),
                "authorizedDomains": .array(settings.continueDomains.map { .string($0) }),
            ])
        }
    }

    /// The characters that Firebase's policies count as non-alphanumeric.
    private static let signs = "^$*.[]{}()?\"!@#%&/\\,><':;|_~-+=`"

    private func passwordPolicy() -> any AccountWork {
        OneCall(Auth.Settings.Get()) { (settings) throws(AuthFault) in
            AccountResponse([
                "customStrengthOptions": [
                    "minPasswordLength": .number(Double(settings.passwordLengthMin)), "maxPasswordLength": 4096,
                ],
                "allowedNonAlphanumericCharacters": .array(Self.signs.map { .string(String($0)) }),
                // There are no rules of composition: what is too short is WEAK_PASSWORD.
                "enforcementState": "OFF", "schemaVersion": 1,
            ])
        }
    }

    private var openIDConfiguration: JSONObject {
        [
            "issuer": .string("https://securetoken.google.com/\(context.project)"),
            "jwks_uri": .string("\(context.origin)/.well-known/jwks.json"),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        ]
    }

    /// A public document, which caches may keep for five minutes: retired keys stay published for longer.
    private static func published(_ members: JSONObject) -> AccountResponse {
        var response = AccountResponse(members)
        response.cacheControl = "public, max-age=300"
        return response
    }

    // MARK: Configuration

    private var configName: String { "projects/\(wire.route.project ?? context.project)/config" }

    private static func emulatorConfig(_ settings: Auth.Settings) -> JSONObject {
        [
            "signIn": ["allowDuplicateEmails": false],
            "emailPrivacyConfig": ["enableImprovedEmailPrivacy": .bool(settings.hidesWhoExists ?? true)],
        ]
    }

    private static func config(_ settings: Auth.Settings, name: String) -> JSONObject {
        var config: JSONObject = ["name": .string(name)]
        for member in emulatorConfig(settings).members { config[member.name] = member.value }
        config["signIn"] = [
            "allowDuplicateEmails": false, "anonymous": ["enabled": .bool(settings.anonymous)],
            "email": ["enabled": .bool(settings.passwordSignIn), "passwordRequired": .bool(!settings.codeSignIn)],
        ]
        config["authorizedDomains"] = .array(settings.continueDomains.map { .string($0) })
        return config
    }

    /// The members that `updateMask` names; without one those of the body, and no other goes back to a default, as it
    /// would at Firebase: settings of the service would change that its administrators have made. SDKs send a mask.
    ///
    /// Throws `AuthFault` for what cannot be.
    func update(_ body: AccountBody, _ operation: AuthOperation) throws(AuthFault) -> any AccountWork {
        let mask = operation == .emulatorUpdateConfig ? nil : AccountParameters(wire.request.query)["updateMask"]
        let change = try ConfigChange(body, mask: mask)
        let isEmulator = operation == .emulatorUpdateConfig
        let identity = isEmulator ? .gateway : wire.caller.identity
        let name = configName
        let respond = { @Sendable (settings: Auth.Settings) throws(AuthFault) in
            guard settings.hidesWhoExists != nil else { throw .notAllowed }
            return AccountResponse(isEmulator ? Self.emulatorConfig(settings) : Self.config(settings, name: name))
        }
        guard !change.request.members.isEmpty else {
            return OneCall(Auth.Settings.Get(), identity, respond: respond)
        }
        return OneCall(change.request, identity, respond: respond)
    }
}

/// A change of a project's configuration, as settings of the service.
struct ConfigChange: Sendable {
    /// The settings; without members where nothing changes.
    private(set) var request = Auth.Settings.Set()
    private let mask: [Substring]?

    /// Throws `AuthFault`: an address is of one account here.
    init(_ body: AccountBody, mask: String?) throws(AuthFault) {
        self.mask = mask.map { $0.split(separator: ",") }
        let signIn = try body.object("signIn")
        let email = try signIn?.object("email")
        let privacy = try body.object("emailPrivacyConfig")
        if try flag("signIn.allowDuplicateEmails", signIn, "allowDuplicateEmails") == true {
            throw .unimplemented("allowDuplicateEmails")
        }
        let anonymous = try signIn?.object("anonymous")
        request.hidesWhoExists = try flag(
            "emailPrivacyConfig.enableImprovedEmailPrivacy", privacy, "enableImprovedEmailPrivacy")
        request.anonymous = try flag("signIn.anonymous.enabled", anonymous, "enabled")
        request.passwordSignIn = try flag("signIn.email.enabled", email, "enabled")
        if let isRequired = try flag("signIn.email.passwordRequired", email, "passwordRequired") {
            request.codeSignIn = !isRequired
        }
        if isNamed("authorizedDomains"), body.has("authorizedDomains") || self.mask != nil {
            request.continueDomains = try body.texts("authorizedDomains")
        }
    }

    /// What the mask names and the body leaves out is false. Throws `AuthFault`.
    private func flag(_ path: String, _ body: AccountBody?, _ name: String) throws(AuthFault) -> Bool? {
        guard isNamed(path) else { return nil }
        let flag = try body?.flag(name)
        return flag ?? (mask == nil ? nil : false)
    }

    /// A mask names a member, or one that contains it; in snake case, too.
    private func isNamed(_ path: String) -> Bool {
        guard let mask else { return true }
        return mask.contains { name in
            let name = Self.camelCase(name)
            return path == name || path.hasPrefix("\(name).")
        }
    }

    private static func camelCase(_ name: Substring) -> String {
        var text = ""
        var rises = false
        for character in name where character != " " {
            if character == "_" {
                rises = true
            } else {
                text += rises ? character.uppercased() : String(character)
                rises = false
            }
        }
        return text
    }
}
