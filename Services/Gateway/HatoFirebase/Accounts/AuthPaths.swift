/// The paths of the account dialect, of all versions, behind the host name if there is one.
struct AuthPaths {
    /// A method and an operation.
    typealias Entry = (method: String, operation: AuthOperation)

    /// SDKs with an emulator's address put the host name of the service first.
    static let hosts: Set<String> = [
        "identitytoolkit.googleapis.com", "securetoken.googleapis.com", "www.googleapis.com", "securetoken.google.com",
    ]

    let method: String
    let isEmulator: Bool

    /// Nil for a path that is none of these.
    func route(_ segments: [String], hasHost: Bool) -> AuthRoute? {
        switch segments.first {
        case ""? where segments.count == 1 && !hasHost && isEmulator && method == "GET":
            AuthRoute(.operation(.emulatorReady))
        case "v1"?, "v2"?: versioned(Array(segments.dropFirst()))
        case "identitytoolkit"? where segments.count == 4 && segments[1] == "v3" && segments[2] == "relyingparty":
            relyingParty(segments[3])
        case ".well-known"? where segments.count == 2: wellKnown(segments[1])
        case "service_accounts"? where segments.count == 4 && segments[1] == "v1" && segments[2] == "jwk":
            only("GET", .keys)
        case "robot"? where Array(segments.prefix(4)) == ["robot", "v1", "metadata", "x509"] && segments.count == 5:
            only("GET", .certificates)
        case "__"? where segments.count == 3 && segments[1] == "auth": page(segments[2])
        case "emulator"? where isEmulator && !hasHost: emulator(Array(segments.dropFirst()))
        default: nil
        }
    }

    private func only(
        _ method: String, _ operation: AuthOperation, _ credential: AuthRoute.Credential = .none,
        of project: String? = nil
    ) -> AuthRoute {
        self.method == method
            ? AuthRoute(.operation(operation), credential, project: project) : AuthRoute(.notFound, project: project)
    }

    // MARK: v1 and v2

    private static let clients: [String: AuthOperation] = [
        "createAuthUri": .createAuthUri, "delete": .delete, "lookup": .lookup, "resetPassword": .resetPassword,
        "revokeToken": .revokeToken, "sendOobCode": .sendOobCode, "signInWithCustomToken": .signInWithCustomToken,
        "signInWithEmailLink": .signInWithEmailLink, "signInWithIdp": .signInWithIdp,
        "signInWithPassword": .signInWithPassword, "signUp": .signUp, "update": .update,
    ]

    private static let clientsMissing: Set<String> = [
        "issueSamlResponse", "sendVerificationCode", "signInWithGameCenter", "signInWithPhoneNumber", "verifyIosClient",
    ]

    private static let factors: Set<String> = ["mfaEnrollment", "mfaSignIn", "passkeyEnrollment", "passkeySignIn"]

    private static let administrators: [String: Entry] = [
        "batchCreate": ("POST", .batchCreate), "batchDelete": ("POST", .batchDelete), "batchGet": ("GET", .batchGet),
        "delete": ("POST", .delete), "lookup": ("POST", .lookup), "query": ("POST", .query),
        "sendOobCode": ("POST", .sendOobCode), "update": ("POST", .update),
    ]

    private static let documents: [String: AuthOperation] = [
        "projects": .projectConfig, "passwordPolicy": .passwordPolicy, "recaptchaConfig": .recaptchaConfig,
        "recaptchaParams": .recaptchaParams,
    ]

    private func versioned(_ segments: [String]) -> AuthRoute? {
        guard let first = segments.first else { return nil }
        if segments.count == 1 {
            if first == "token" { return only("POST", .token, .apiKey) }
            if let operation = Self.documents[first] { return only("GET", operation, .apiKey) }
            if first == "sessionCookiePublicKeys" { return only("GET", .keys) }
            if first == "defaultSupportedIdps" { return AuthRoute(.unimplemented(first)) }
            guard first.hasPrefix("accounts:") else { return nil }
            return client(String(first.dropFirst("accounts:".count)))
        }
        if first == "accounts", segments.count == 2 {
            let names = segments[1].split(separator: ":", maxSplits: 1).map(String.init)
            guard names.count == 2, Self.factors.contains(names[0]) else { return nil }
            return AuthRoute(.unimplemented(segments[1]), .apiKey)
        }
        return first == "projects" ? project(Array(segments.dropFirst())) : nil
    }

    private func client(_ name: String) -> AuthRoute {
        if let operation = Self.clients[name] { return only("POST", operation, .apiKey) }
        return Self.clientsMissing.contains(name) ? AuthRoute(.unimplemented(name), .apiKey) : AuthRoute(.notFound)
    }

    /// Behind `projects/`: the project, with `:createSessionCookie` or more segments.
    private func project(_ segments: [String]) -> AuthRoute? {
        if segments.count == 1 {
            let names = segments[0].split(separator: ":", maxSplits: 1).map(String.init)
            guard names.count == 2 else { return nil }
            switch names[1] {
            case "createSessionCookie": return only("POST", .createSessionCookie, .administrator, of: names[0])
            case "queryAccounts": return only("POST", .query, .administrator, of: names[0])
            default: return AuthRoute(.notFound, project: names[0])
            }
        }
        let (project, name) = (segments[0], segments[1])
        let unimplemented = AuthRoute(.unimplemented(name), .administrator, project: project)
        switch name {
        case "accounts" where segments.count == 2: return only("POST", .signUp, .administrator, of: project)
        case "config" where segments.count == 2:
            return method == "PATCH"
                ? only("PATCH", .updateConfig, .administrator, of: project)
                : only("GET", .config, .administrator, of: project)
        case "defaultSupportedIdpConfigs", "inboundSamlConfigs", "oauthIdpConfigs", "identityPlatform:initializeAuth":
            return unimplemented
        case _ where name == "tenants" || name.hasPrefix("tenants:"):
            return AuthRoute(.unimplemented("tenants"), .administrator, project: project)
        case _ where segments.count == 2 && name.hasPrefix("accounts:"):
            guard let entry = Self.administrators[String(name.dropFirst("accounts:".count))] else {
                return AuthRoute(.notFound, project: project)
            }
            return only(entry.method, entry.operation, .administrator, of: project)
        default: return nil
        }
    }

    // MARK: v3

    private static let aliases: [String: AuthOperation] = [
        "createAuthUri": .createAuthUri, "deleteAccount": .delete, "emailLinkSignin": .signInWithEmailLink,
        "getAccountInfo": .lookup, "getOobConfirmationCode": .sendOobCode, "resetPassword": .resetPassword,
        "setAccountInfo": .update, "signupNewUser": .signUp, "verifyAssertion": .signInWithIdp,
        "verifyCustomToken": .signInWithCustomToken, "verifyPassword": .signInWithPassword,
    ]

    private static let aliasesMissing: Set<String> = [
        "sendVerificationCode", "setProjectConfig", "signOutUser", "verifyPhoneNumber",
    ]

    private func relyingParty(_ alias: String) -> AuthRoute {
        if let operation = Self.aliases[alias] { return only("POST", operation, .apiKey) }
        switch alias {
        case "getProjectConfig": return only("GET", .projectConfig, .apiKey)
        case "getRecaptchaParam": return only("GET", .recaptchaParams, .apiKey)
        case "publicKeys": return only("GET", .certificates)
        case "downloadAccount": return only("POST", .batchGet, .administrator)
        case "uploadAccount": return only("POST", .batchCreate, .administrator)
        default:
            return Self.aliasesMissing.contains(alias)
                ? AuthRoute(.unimplemented(alias), .apiKey) : AuthRoute(.notFound)
        }
    }

    // MARK: Keys, pages, emulator

    private func wellKnown(_ name: String) -> AuthRoute? {
        switch name {
        case "jwks.json": only("GET", .keys)
        case "openid-configuration": only("GET", .openIDConfiguration)
        default: nil
        }
    }

    private func page(_ name: String) -> AuthRoute? {
        switch name {
        case "action": method == "POST" ? only("POST", .actionForm) : only("GET", .actionPage)
        case "handler", "iframe": AuthRoute(.unimplemented("pop-up and redirect sign-in"))
        default: nil
        }
    }

    /// The others are of the database: `/emulator/openapi.json` is a node.
    private func emulator(_ segments: [String]) -> AuthRoute? {
        switch segments {
        case ["action"]: return only("GET", .emulatorAction)
        case ["auth", "handler"], ["auth", "iframe"]: return AuthRoute(.unimplemented("pop-up and redirect sign-in"))
        case _ where segments.count == 4 && segments[0] == "v1" && segments[1] == "projects":
            let project = segments[2]
            switch segments[3] {
            case "accounts": return only("DELETE", .emulatorDeleteAccounts, of: project)
            case "oobCodes": return only("GET", .emulatorOobCodes, of: project)
            case "verificationCodes": return only("GET", .emulatorVerificationCodes, of: project)
            case "config":
                return method == "PATCH"
                    ? only("PATCH", .emulatorUpdateConfig, of: project) : only("GET", .emulatorConfig, of: project)
            default: return nil
            }
        case _ where segments.starts(with: ["v1", "projects"]) && segments.dropFirst(3).first == "tenants":
            return AuthRoute(.unimplemented("tenants"))
        default: return nil
        }
    }
}
