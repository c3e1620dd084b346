import HatoModel
import Testing

@testable import HatoFirebase

/// Paths of all versions lead to one operation each (spec auth §1, §3, §5, §8).
@Suite struct AccountRouteTests {
    private static let clients: [(name: String, alias: String?, operation: AuthOperation)] = [
        ("signUp", "signupNewUser", .signUp), ("signInWithPassword", "verifyPassword", .signInWithPassword),
        ("signInWithCustomToken", "verifyCustomToken", .signInWithCustomToken),
        ("signInWithEmailLink", "emailLinkSignin", .signInWithEmailLink),
        ("signInWithIdp", "verifyAssertion", .signInWithIdp), ("lookup", "getAccountInfo", .lookup),
        ("update", "setAccountInfo", .update), ("delete", "deleteAccount", .delete),
        ("sendOobCode", "getOobConfirmationCode", .sendOobCode), ("resetPassword", "resetPassword", .resetPassword),
        ("createAuthUri", "createAuthUri", .createAuthUri), ("revokeToken", nil, .revokeToken),
    ]

    private func target(_ method: String, _ path: String, isEmulator: Bool = false) -> AuthRoute.Target? {
        AuthRoute.find(method, path, isEmulator: isEmulator)?.target
    }

    @Test func operationsOfClientsHaveThePathsOfAllVersions() {
        for (name, alias, operation) in Self.clients {
            let paths =
                [
                    "/v1/accounts:\(name)", "/v2/accounts:\(name)", "/v1/accounts%3A\(name)",
                    "/identitytoolkit.googleapis.com/v1/accounts:\(name)",
                    "/identitytoolkit.googleapis.com/v2/accounts:\(name)",
                ]
                + (alias.map {
                    [
                        "/identitytoolkit/v3/relyingparty/\($0)",
                        "/www.googleapis.com/identitytoolkit/v3/relyingparty/\($0)",
                    ]
                } ?? [])
            for path in paths {
                let route = AuthRoute.find("POST", path, isEmulator: false)
                #expect(route?.target == .operation(operation), "\(path)")
                #expect(route?.credential == .apiKey, "\(path)")
                #expect(target("GET", path) == .notFound, "\(path)")
            }
        }
    }

    @Test(arguments: [
        ("GET", "/v1/projects", AuthOperation.projectConfig), ("GET", "/v2/passwordPolicy", .passwordPolicy),
        ("GET", "/v2/recaptchaConfig", .recaptchaConfig), ("GET", "/v1/recaptchaParams", .recaptchaParams),
        ("GET", "/identitytoolkit/v3/relyingparty/getProjectConfig", .projectConfig),
        ("GET", "/identitytoolkit/v3/relyingparty/getRecaptchaParam", .recaptchaParams),
        ("POST", "/v1/token", .token), ("POST", "/securetoken.googleapis.com/v1/token", .token),
    ])
    func documentsAndTokensNeedAnAPIKey(method: String, path: String, operation: AuthOperation) {
        let route = AuthRoute.find(method, path, isEmulator: false)
        #expect(route?.target == .operation(operation))
        #expect(route?.credential == .apiKey)
    }

    @Test(arguments: [
        ("POST", "accounts", AuthOperation.signUp), ("POST", "accounts:lookup", .lookup),
        ("POST", "accounts:update", .update), ("POST", "accounts:delete", .delete),
        ("GET", "accounts:batchGet", .batchGet), ("POST", "accounts:batchCreate", .batchCreate),
        ("POST", "accounts:batchDelete", .batchDelete), ("POST", "accounts:query", .query),
        ("POST", "accounts:sendOobCode", .sendOobCode), ("GET", "config", .config), ("PATCH", "config", .updateConfig),
    ])
    func operationsOfAdministratorsHaveTheProjectInTheirPath(method: String, name: String, operation: AuthOperation) {
        for prefix in ["", "/identitytoolkit.googleapis.com"] {
            for version in ["v1", "v2"] {
                let route = AuthRoute.find(method, "\(prefix)/\(version)/projects/my%20chat/\(name)", isEmulator: false)
                #expect(route?.target == .operation(operation))
                #expect(route?.credential == .administrator)
                #expect(route?.project == "my chat")
            }
        }
        #expect(target("DELETE", "/v1/projects/p/\(name)") == .notFound)
        let tenant = AuthRoute.find(method, "/v1/projects/p/tenants/t/\(name)", isEmulator: false)
        #expect(tenant?.target == .unimplemented("tenants") && tenant?.credential == .administrator)
    }

    @Test func cookiesAndQueriesAreOfTheProjectItself() {
        let cookie = AuthRoute.find("POST", "/v1/projects/p:createSessionCookie", isEmulator: false)
        #expect(cookie?.target == .operation(.createSessionCookie) && cookie?.project == "p")
        #expect(target("POST", "/v1/projects/p:queryAccounts") == .operation(.query))
        #expect(target("POST", "/v1/projects/p:other") == .notFound)
        #expect(target("POST", "/identitytoolkit/v3/relyingparty/downloadAccount") == .operation(.batchGet))
        #expect(target("POST", "/identitytoolkit/v3/relyingparty/uploadAccount") == .operation(.batchCreate))
    }

    @Test(arguments: [
        ("/v1/accounts:signInWithPhoneNumber", "signInWithPhoneNumber"),
        ("/v1/accounts:sendVerificationCode", "sendVerificationCode"),
        ("/v1/accounts:issueSamlResponse", "issueSamlResponse"), ("/v1/accounts:verifyIosClient", "verifyIosClient"),
        ("/v1/accounts:signInWithGameCenter", "signInWithGameCenter"),
        ("/v2/accounts/mfaEnrollment:start", "mfaEnrollment:start"),
        ("/v2/accounts/mfaSignIn:finalize", "mfaSignIn:finalize"),
        ("/v2/accounts/passkeyEnrollment:start", "passkeyEnrollment:start"),
        ("/v2/accounts/passkeySignIn:finalize", "passkeySignIn:finalize"),
        ("/v2/projects/p/tenants", "tenants"), ("/v2/projects/p/tenants/t:getIamPolicy", "tenants"),
        ("/v2/projects/p/oauthIdpConfigs", "oauthIdpConfigs"),
        ("/v2/projects/p/inboundSamlConfigs/c", "inboundSamlConfigs"),
        ("/v2/projects/p/identityPlatform:initializeAuth", "identityPlatform:initializeAuth"),
        ("/identitytoolkit/v3/relyingparty/verifyPhoneNumber", "verifyPhoneNumber"),
        ("/identitytoolkit/v3/relyingparty/signOutUser", "signOutUser"),
        ("/identitytoolkit/v3/relyingparty/setProjectConfig", "setProjectConfig"),
        ("/__/auth/handler", "pop-up and redirect sign-in"), ("/__/auth/iframe", "pop-up and redirect sign-in"),
    ])
    func whatIsNotThereIsNamed(path: String, name: String) {
        #expect(target("POST", path) == .unimplemented(name))
        #expect(
            AccountTrial(
                AccountRequest("POST", "\(path)?key=k").with { $0.authorization = "Bearer \(AccountTrial.key)" }
            ).message == "\(name) is not implemented")
    }

    @Test func keysAreWhereVerifiersLook() {
        for path in [
            "/.well-known/jwks.json",
            "/www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com",
            "/v1/sessionCookiePublicKeys", "/identitytoolkit.googleapis.com/v1/sessionCookiePublicKeys",
        ] { #expect(target("GET", path) == .operation(.keys), "\(path)") }
        #expect(target("GET", "/.well-known/openid-configuration") == .operation(.openIDConfiguration))
        for path in [
            "/www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com",
            "/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com",
            "/identitytoolkit/v3/relyingparty/publicKeys",
        ] { #expect(target("GET", path) == .operation(.certificates), "\(path)") }
    }

    @Test func pathsOfAnEmulatorAreThereInItsModeOnly() {
        let paths: [(String, String, AuthOperation)] = [
            ("GET", "/", .emulatorReady), ("DELETE", "/emulator/v1/projects/p/accounts", .emulatorDeleteAccounts),
            ("GET", "/emulator/v1/projects/p/config", .emulatorConfig),
            ("PATCH", "/emulator/v1/projects/p/config", .emulatorUpdateConfig),
            ("GET", "/emulator/v1/projects/p/oobCodes", .emulatorOobCodes),
            ("GET", "/emulator/v1/projects/p/verificationCodes", .emulatorVerificationCodes),
            ("GET", "/emulator/action", .emulatorAction),
        ]
        for (method, path, operation) in paths {
            #expect(target(method, path, isEmulator: true) == .operation(operation), "\(path)")
            #expect(target(method, path) == nil, "\(path)")
        }
        #expect(target("GET", "/emulator/openapi.json", isEmulator: true) == nil)
        #expect(
            target("GET", "/emulator/v1/projects/p/tenants/t/oobCodes", isEmulator: true) == .unimplemented("tenants"))
    }

    @Test(arguments: [
        "", "/users.json", "/v1.json", "/v1/users.json", "/v1/projects/p.json", "//v1/token", "/v3/x", "v1/token",
        "/v1/accounts:signUp.json", "/v1/projects/p/accounts:lookup.json", "/identitytoolkit/v3/relyingparty/x.json",
    ])
    func pathsOfTheDatabaseAreNone(path: String) { #expect(target("POST", path) == nil) }

    @Test(arguments: [
        "/v1/accounts:unknown", "/identitytoolkit.googleapis.com/v1/nothing",
        "/identitytoolkit/v3/relyingparty/unknown",
        "/www.googleapis.com/", "/v1/projects/p/accounts:signUp",
    ])
    func whatIsUnknownIs404(path: String) {
        let trial = AccountTrial(AccountRequest("POST", path))
        #expect(trial.status == 404)
        #expect(trial.json?["error"]?["status"] == "NOT_FOUND")
    }
}
