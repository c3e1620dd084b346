import HatoModel
import Testing

@testable import HatoFirebase

/// API keys, administrators, and the envelope of errors (spec auth §1).
@Suite struct AccountCredentialTests {
    private func lookup(_ change: (inout AccountRequest) -> Void = { _ in }) -> AccountRequest {
        AccountRequest("POST", "/v1/accounts:lookup", body: Array(#"{"idToken":"t"}"#.utf8)).with(change)
    }

    @Test func anAPIKeyIsInTheQueryOrTheHeader() {
        #expect(AccountTrial(lookup { $0.query = "key=k" }).method == "auth.account.get")
        #expect(AccountTrial(lookup { $0.apiKey = "k" }).method == "auth.account.get")
        #expect(AccountTrial(lookup { $0.query = "key=" }).status == 403)
    }

    @Test func aMissingAPIKeyIsRefusedWithItsEnvelope() {
        let trial = AccountTrial(lookup())
        #expect(trial.status == 403)
        #expect(
            trial.json == [
                "error": [
                    "code": 403, "message": "The request is missing a valid API key.", "status": "PERMISSION_DENIED",
                    "errors": [
                        [
                            "message": "The request is missing a valid API key.", "domain": "global",
                            "reason": "forbidden",
                        ]
                    ],
                ]
            ])
    }

    @Test func onlyListedAPIKeysAreRight() {
        var context = AccountContext.test
        context.apiKeys = .listed(["right"])
        #expect(AccountTrial(lookup { $0.query = "key=right" }, context).calls.count == 1)
        let wrong = AccountTrial(lookup { $0.query = "key=wrong" }, context)
        #expect(wrong.status == 400 && wrong.message == "API key not valid. Please pass a valid API key.")
    }

    @Test func administratorsShowTheirKeyAsBearerToken() {
        let trial = AccountTrial(.administrator("POST", "/accounts:lookup", ["localId": ["u1"]]))
        #expect(trial.calls.map(\.identity) == [.credential(AccountTrial.key)])
        #expect(trial.calls[0].params(administratorKey: nil)?["auth"] == .string(AccountTrial.key))
        let missing = AccountTrial(.administrator("POST", "/accounts:lookup").with { $0.authorization = nil })
        #expect(missing.status == 401)
        #expect(missing.json?["error"]?["status"] == "UNAUTHENTICATED")
        #expect(missing.json?["error"]?["errors"]?.array?.first?["location"] == "Authorization")
        let basic = AccountTrial(.administrator("POST", "/accounts:lookup").with { $0.authorization = "Basic eDp5" })
        #expect(basic.status == 401)
    }

    @Test func aWrongAdministratorKeyIs401AndAUsersTokenIs403() {
        let request = AccountRequest.administrator("POST", "/accounts:delete", ["localId": "u1"])
        let wrong = AccountTrial(request, .test, [.refused(.unauthenticated, "INVALID_ID_TOKEN")])
        #expect(wrong.status == 401 && wrong.json?["error"]?["status"] == "UNAUTHENTICATED")
        let user = AccountTrial(request, .test, [.refused(.permissionDenied, "permission_denied")])
        #expect(user.status == 403 && user.json?["error"]?["status"] == "PERMISSION_DENIED")
        #expect(!wrong.text.contains(AccountTrial.key) && !user.text.contains(AccountTrial.key))
    }

    @Test func aWrongKeyIsRefusedByOperationsOfClientsToo() {
        let request = AccountRequest.client("signInWithPassword", ["email": "a@b.c", "password": "secret"])
            .with { $0.authorization = "bearer \(AccountTrial.key)" }
        let trial = AccountTrial(request, .test, [.refused(.unauthenticated, "INVALID_ID_TOKEN")])
        #expect(trial.calls[0].identity == .credential(AccountTrial.key))
        #expect(trial.status == 401)
    }

    /// Else any text would open what a list of API keys closes.
    @Test(arguments: [
        AccountRequest("GET", "/v2/recaptchaConfig"), AccountRequest("GET", "/v1/projects"),
        AccountRequest("POST", "/v1/accounts:lookup", body: Array(#"{"idToken":"t"}"#.utf8)),
        AccountRequest("POST", "/v1/accounts:revokeToken", body: Array("{}".utf8)),
        AccountRequest("POST", "/v1/token", body: Array("grant_type=refresh_token&refresh_token=r".utf8)),
        AccountRequest("POST", "/v1/projects/demo/accounts:lookup", body: Array(#"{"idToken":"t"}"#.utf8)),
    ])
    func aBearerTokenThatIsNotShownReplacesNoAPIKey(request: AccountRequest) {
        var context = AccountContext.test
        context.apiKeys = .listed(["right"])
        let bearer = request.with { $0.authorization = "Bearer anything" }
        let missing = AccountTrial(bearer, context)
        #expect(missing.status == 403 && missing.calls.isEmpty)
        #expect(AccountTrial(bearer.with { $0.apiKey = "wrong" }, context).status == 400)
        let right = AccountTrial(bearer.with { $0.apiKey = "right" }, context)
        #expect(right.status == 200 || right.calls.count == 1)
    }

    @Test func anAdministratorNeedsNoAPIKeyForWhatIsShown() {
        var context = AccountContext.test
        context.apiKeys = .listed(["right"])
        for (name, body) in [("signUp", [:]), ("lookup", ["localId": ["u"]])] as [(String, JSONValue)] {
            let request = AccountRequest("POST", "/v1/accounts:\(name)", body: body.encoded)
                .with { $0.authorization = "Bearer \(AccountTrial.key)" }
            #expect(AccountTrial(request, context).calls.map(\.identity) == [.credential(AccountTrial.key)], "\(name)")
        }
        // What is wrong in the request is said first, as to every administrator.
        let wrong = AccountTrial(.administrator("POST", "/accounts:delete", [:]), context)
        #expect(wrong.message == "MISSING_LOCAL_ID")
    }

    @Test(arguments: ["Bearer ", "Bearer    ", "Bearer \(String(repeating: "x", count: 20_000))"])
    func aBearerTokenThatCannotBeOneIs401(header: String) {
        #expect(
            AccountTrial(.administrator("POST", "/accounts:delete").with { $0.authorization = header }).status == 401)
    }

    @Test func ownerIsTheAdministratorOfAnEmulatorAlone() {
        for header in ["Bearer owner", "bearer OWNER", "Bearer ya29.token"] {
            let request = AccountRequest.administrator("POST", "/accounts:delete", ["localId": "u1"])
                .with { $0.authorization = header }
            let emulator = AccountTrial(request, .emulator)
            #expect(emulator.calls.map(\.identity) == [.gateway])
            #expect(emulator.calls[0].params(administratorKey: nil) == nil)
            #expect(emulator.calls[0].params(administratorKey: "k")?["auth"] == "k")
            // Elsewhere the service refuses it.
            #expect(AccountTrial(request).calls.map(\.identity) == [.credential(String(header.dropFirst(7)))])
        }
    }

    @Test func aClientNamesNoOtherProject() {
        let trial = AccountTrial("signUp", ["targetProjectId": "other"])
        #expect(trial.message == "INSUFFICIENT_PERMISSION : Only authenticated requests can specify target_project_id.")
        #expect(AccountTrial("signUp", ["tenantId": "t"]).message == "tenants is not implemented")
        #expect(AccountTrial(AccountRequest("GET", "/v2/passwordPolicy?key=k&tenantId=t")).status == 501)
    }

    /// A script with the id of another project must not delete here.
    @Test func anotherProjectIsNotFound() {
        for (path, body) in [
            ("/v1/projects/other/accounts:delete", ["localId": "u1"]), ("/v1/projects/other/accounts", [:]),
            ("/v1/projects/other:createSessionCookie", ["idToken": "t"]),
            ("/identitytoolkit/v3/relyingparty/deleteAccount", ["localId": "u1", "targetProjectId": "other"]),
        ] as [(String, JSONValue)] {
            let request = AccountRequest("POST", path, body: body.encoded)
            let trial = AccountTrial(request.with { $0.authorization = "Bearer \(AccountTrial.key)" })
            #expect(trial.calls.isEmpty && trial.status == 400, "\(path)")
            #expect(trial.message == "PROJECT_NOT_FOUND : The project here is demo.", "\(path)")
            #expect(AccountTrial(request).status == (path.hasPrefix("/v1") ? 401 : 403), "\(path)")
        }
        for project in ["demo", "12345"] {
            let request = AccountRequest(
                "POST", "/v1/projects/\(project)/accounts:delete",
                body: JSONValue.object(["localId": "u1", "targetProjectId": .string(project)]).encoded)
            let trial = AccountTrial(request.with { $0.authorization = "Bearer \(AccountTrial.key)" })
            #expect(trial.method == "auth.users.delete", "\(project)")
        }
        let deletion = AccountRequest("DELETE", "/emulator/v1/projects/other/accounts")
        #expect(AccountTrial(deletion, .emulator).method == "auth.users.list")
    }

    // MARK: Bodies

    @Test(arguments: ["{", "[]", "\"text\"", "{\"email\":}", "{\"a\":1,\"a\":2}", "\u{FEFF}{}", "nonsense"])
    func whatIsNoObjectIsAnInvalidPayload(body: String) {
        let trial = AccountTrial(AccountRequest("POST", "/v1/accounts:signUp?key=k", body: Array(body.utf8)))
        #expect(trial.status == 400 && trial.json?["error"]?["status"] == "INVALID_ARGUMENT")
        #expect(trial.message?.hasPrefix("Invalid JSON payload received. ") == true)
    }

    @Test func badUTF8AndDeepBodiesAreInvalidPayloads() {
        for body in [[0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], Array(String(repeating: "[", count: 100_000).utf8)] {
            #expect(AccountTrial(AccountRequest("POST", "/v1/accounts:signUp?key=k", body: body)).status == 400)
        }
    }

    @Test func aHugeBodyIsRefusedUnread() {
        var context = AccountContext.test
        context.limits.bodyBytesMax = 100
        let request = AccountRequest.client("signUp", ["email": .string(String(repeating: "a", count: 100))])
        #expect(AccountTrial(request, context).message == "Request payload size exceeds the limit: 100 bytes.")
        context.limits.bodyBytesMax = 1 << 20
        context.limits.bodyMemoryPerByteMax = 0
        let many = AccountRequest.client("signUp", ["x": .array(Array(repeating: 1, count: 10_000))])
        #expect(AccountTrial(many, context).status == 400)
    }

    @Test(
        arguments: [
            ("signInWithPassword", ["email": 5, "password": "p"], "Invalid value at 'email': a string is expected"),
            ("signUp", ["email": "a@b.c", "password": ["x"]], "Invalid value at 'password': a string is expected"),
            ("lookup", ["idToken": false], "Invalid value at 'idToken': a string is expected"),
            (
                "update", ["idToken": "t", "deleteAttribute": ["NAME"]],
                "Invalid value at 'deleteAttribute': a list of "
            ),
            (
                "update", ["idToken": "t", "deleteProvider": [1]],
                "Invalid value at 'deleteProvider': a list of strings"
            ),
            (
                "sendOobCode", ["requestType": "OTHER"],
                "Invalid value at 'requestType': one of OOB_REQ_TYPE_UNSPECIFIED"
            ),
            ("sendOobCode", ["requestType": 99], "Invalid value at 'requestType': one of OOB_REQ_TYPE_UNSPECIFIED"),
        ] as [(String, JSONValue, String)])
    func aMemberOfAnotherTypeIsNamed(name: String, body: JSONValue, message: String) {
        let trial = AccountTrial(name, body)
        #expect(trial.calls.isEmpty && trial.status == 400)
        #expect(trial.message?.hasPrefix("Invalid JSON payload received. \(message)") == true)
    }

    @Test func namesAreInCamelCaseOrSnakeCaseAndNullIsAbsent() {
        let snake = AccountTrial(
            "signUp",
            [
                "email": "a@b.c", "password": "password", "display_name": "A", "id_token": nil, "photoURL": "ignored",
            ])
        #expect(snake.params == ["email": "a@b.c", "password": "password", "displayName": "A"])
        let both = AccountTrial("lookup", ["id_token": "t"])
        #expect(both.calls.map(\.identity) == [.credential("t")])
    }

    @Test func anEmptyBodyIsAnEmptyObject() {
        for body in ["", "  \r\n", "{}", #"{"returnSecureToken":true}"#] {
            let trial = AccountTrial(
                AccountRequest("POST", "/identitytoolkit/v3/relyingparty/signupNewUser?key=", body: Array(body.utf8))
                    .with { $0.apiKey = "k" })
            #expect(trial.method == "auth.signUp" && trial.params == [:])
        }
        #expect(AccountTrial(AccountRequest("POST", "/v1/accounts:signUp?key=k")).method == "auth.signUp")
    }
}
