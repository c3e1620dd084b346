import HatoModel
import Testing

@testable import HatoFirebase

/// What clients read of the project, and its keys (spec auth §3, §4).
@Suite struct AccountProjectTests {
    private func get(_ target: String, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(AccountRequest("GET", target), .test, outcomes)
    }

    @Test func theProjectHasItsDomains() {
        let trial = get("/v1/projects?key=k", [.success(Native.settings())])
        #expect(trial.method == "auth.settings.get" && trial.calls[0].identity == .none)
        #expect(trial.json == ["projectId": "12345", "authorizedDomains": ["chat.example.com"]])
        let local = get("/v1/projects?key=k", [.success(Native.settings(["continueDomains": ["localhost"]]))])
        #expect(local.json?["authorizedDomains"] == ["localhost"])
        #expect(get("/v1/projects?key=k", [.refused(.unavailable, "stopping")]).status == 503)
    }

    @Test func thePasswordPolicyIsTheLength() {
        let trial = get("/v2/passwordPolicy?key=k", [.success(Native.settings())])
        #expect(trial.json?["customStrengthOptions"] == ["minPasswordLength": 15, "maxPasswordLength": 4096])
        #expect(trial.json?["enforcementState"] == "OFF" && trial.json?["schemaVersion"] == 1)
        #expect(trial.json?["allowedNonAlphanumericCharacters"]?.array?.count == 32)
    }

    @Test func thereIsNoCaptcha() {
        #expect(
            get("/v2/recaptchaConfig?key=k&clientType=CLIENT_TYPE_WEB&version=RECAPTCHA_ENTERPRISE").json
                == ["recaptchaKey": "", "recaptchaEnforcementState": []])
        #expect(get("/v1/recaptchaParams?key=k").json?["recaptchaEnforcementState"] == [])
        #expect(get("/v2/recaptchaConfig").status == 403)
    }

    @Test func keysArePublishedForVerifiers() {
        let keys: JSONValue = [
            "keys": [["kty": "EC", "crv": "P-256", "x": "a", "y": "b", "kid": "k1", "alg": "ES256", "use": "sig"]]
        ]
        let trial = get("/.well-known/jwks.json", [.success(keys)])
        #expect(trial.method == "auth.keys" && trial.json == keys)
        #expect(trial.response?.cacheControl == "public, max-age=300")
        let configuration = get("/.well-known/openid-configuration")
        #expect(configuration.json?["issuer"] == "https://securetoken.google.com/demo")
        #expect(configuration.json?["jwks_uri"] == "http://127.0.0.1:7700/.well-known/jwks.json")
        #expect(configuration.json?["id_token_signing_alg_values_supported"] == ["ES256"])
    }

    @Test func certificatesAreNotThereAndTheKeysAreNamed() {
        let trial = get("/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com")
        #expect(trial.status == 404 && trial.message?.contains("/.well-known/jwks.json") == true)
    }

    @Test func accountsAndTokensAreNotCached() {
        #expect(AccountTrial("lookup", ["idToken": "t"], [.success(Native.masuo)]).response?.cacheControl == "no-store")
        #expect(AccountTrial("lookup", [:]).response?.cacheControl == "no-store")
    }
}
