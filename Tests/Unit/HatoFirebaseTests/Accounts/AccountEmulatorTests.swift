import HatoModel
import Testing

@testable import HatoFirebase

/// What a gateway does besides in emulator mode (spec auth §8).
@Suite struct AccountEmulatorTests {
    private func trial(
        _ method: String, _ target: String, _ body: JSONValue? = nil, _ outcomes: [Result<JSONValue, RPCError>] = []
    ) -> AccountTrial {
        AccountTrial(AccountRequest(method, target, body: body?.encoded ?? []), .emulator, outcomes)
    }

    @Test func toolsFindIt() { #expect(trial("GET", "/").json == ["authEmulator": ["ready": true]]) }

    @Test func allAccountsAreDeleted() {
        let trial = trial(
            "DELETE", "/emulator/v1/projects/demo/accounts", nil,
            [
                .success(["users": [Native.account("a"), Native.account("b")], "after": "b"]), .success([:]),
                .refused(.notFound, "USER_NOT_FOUND"), .success(["users": [Native.account("c")]]), .success([:]),
            ])
        #expect(
            trial.calls.map(\.method) == [
                "auth.users.list", "auth.users.delete", "auth.users.delete", "auth.users.list", "auth.users.delete",
            ])
        #expect(trial.calls.compactMap { $0.params["uid"]?.string } == ["a", "b", "c"])
        #expect(trial.calls[3].params["after"] == "b")
        #expect(Set(trial.calls.map(\.identity)) == [.gateway])
        #expect(trial.json == [:] && trial.response?.effect == .forgetCodes)
    }

    @Test func itsConfigurationIsReadAndChanged() {
        let settings = Native.settings(["hidesWhoExists": false])
        let config: JSONValue = [
            "signIn": ["allowDuplicateEmails": false], "emailPrivacyConfig": ["enableImprovedEmailPrivacy": false],
        ]
        #expect(trial("GET", "/emulator/v1/projects/demo/config", nil, [.success(settings)]).json == config)
        let changed = trial("PATCH", "/emulator/v1/projects/demo/config", config, [.success(settings)])
        #expect(changed.method == "auth.settings.set" && changed.params == ["hidesWhoExists": false])
        #expect(changed.calls[0].identity == .gateway && changed.json == config)
        #expect(
            trial("PATCH", "/emulator/v1/projects/demo/config", ["signIn": ["allowDuplicateEmails": true]]).status
                == 501)
    }

    @Test func thereAreNoCodesOfPhones() {
        #expect(trial("GET", "/emulator/v1/projects/demo/verificationCodes").json == ["verificationCodes": []])
        #expect(trial("GET", "/emulator/auth/handler").status == 501)
    }

    // MARK: Codes

    private let issued: Result<JSONValue, RPCError> = .success(["email": "a@b.c", "code": "c-1", "digits": "483920"])

    @Test func aCodeIsKeptInPlaceOfAMail() throws {
        let request = AccountRequest.client(
            "sendOobCode",
            [
                "requestType": "EMAIL_SIGNIN", "email": "a@b.c", "continueUrl": "http://localhost/x?a=1#f",
                "canHandleCodeInApp": true,
            ])
        let trial = AccountTrial(request, .emulator, [issued])
        #expect(trial.params == ["type": "signIn", "email": "a@b.c", "returnCode": true])
        #expect(trial.calls[0].identity == .gateway)
        #expect(trial.json == ["kind": "identitytoolkit#GetOobConfirmationCodeResponse", "email": "a@b.c"])
        var context = AccountContext.emulator
        context.codes.apply(try #require(trial.response?.effect))
        let link =
            "http://127.0.0.1:7700/emulator/action?mode=signIn&lang=en&oobCode=c-1&apiKey=fake"
            + "&continueUrl=http%3A%2F%2Flocalhost%2Fx%3Fa%3D1%23f"
        let listed = AccountTrial(AccountRequest("GET", "/emulator/v1/projects/demo/oobCodes"), context)
        #expect(
            listed.json == [
                "oobCodes": [
                    [
                        "email": "a@b.c", "requestType": "EMAIL_SIGNIN", "oobCode": "c-1",
                        "oobLink": .string(link),
                    ]
                ]
            ])
        context.codes.apply(.forgetCodes)
        #expect(
            AccountTrial(AccountRequest("GET", "/emulator/v1/projects/demo/oobCodes"), context).json == ["oobCodes": []]
        )
    }

    @Test func theAddressOfAUserIsReadFirst() {
        let verify = AccountTrial(
            "sendOobCode", ["requestType": "VERIFY_EMAIL", "idToken": "t"], [.success(Native.masuo), issued],
            in: .emulator)
        #expect(verify.calls.map(\.method) == ["auth.account.get", "auth.code.request"])
        #expect(verify.calls.map(\.identity) == [.credential("t"), .gateway])
        #expect(verify.params == ["type": "verifyEmail", "email": "masuo@example.com", "returnCode": true])
        let change = AccountTrial(
            "sendOobCode", ["requestType": "VERIFY_AND_CHANGE_EMAIL", "idToken": "t", "newEmail": "n@b.c"],
            [.success(Native.masuo), issued], in: .emulator)
        #expect(
            change.params == [
                "type": "changeEmail", "email": "masuo@example.com", "newEmail": "n@b.c", "returnCode": true,
            ])
        let anonymous = AccountTrial(
            "sendOobCode", ["requestType": "VERIFY_EMAIL", "idToken": "t"], [.success(Native.account())], in: .emulator)
        #expect(anonymous.message == "MISSING_EMAIL")
        let gone = AccountTrial(
            "sendOobCode", ["requestType": "VERIFY_EMAIL", "idToken": "t"], [.refused(.notFound, "USER_NOT_FOUND")],
            in: .emulator)
        #expect(gone.message == "USER_NOT_FOUND")
    }

    @Test func ownerGetsTheLink() {
        let body: JSONValue = ["requestType": "PASSWORD_RESET", "email": "a@b.c", "returnOobLink": true]
        let request = AccountRequest.administrator("POST", "/accounts:sendOobCode", body).with {
            $0.authorization = "Bearer owner"
        }
        let trial = AccountTrial(request, .emulator, [issued])
        #expect(trial.json?["oobCode"] == "c-1")
        #expect(
            trial.json?["oobLink"]
                == "http://127.0.0.1:7700/emulator/action?mode=resetPassword&lang=en&oobCode=c-1&apiKey=demo")
        #expect(trial.response?.effect != nil)
    }

    @Test func anUnknownAddressIsHiddenWhereAccountsAre() {
        let body: JSONValue = ["requestType": "PASSWORD_RESET", "email": "a@b.c"]
        func trial(_ hides: Bool) -> AccountTrial {
            AccountTrial(
                "sendOobCode", body,
                [
                    .refused(.unauthenticated, "EMAIL_NOT_FOUND"),
                    .success(Native.settings(["hidesWhoExists": .bool(hides)])),
                ],
                in: .emulator)
        }
        #expect(trial(false).message == "EMAIL_NOT_FOUND")
        #expect(trial(true).status == 200 && trial(true).response?.effect == nil)
    }

    @Test func theNewestThousandCodesAreKept() throws {
        var log = OobCodeLog()
        for index in 0..<1_010 {
            log.apply(
                .remember(.init(email: "e\(index)", newEmail: nil, requestType: "PASSWORD_RESET", code: "c", link: "l"))
            )
        }
        let entries = try #require(log.json.array)
        #expect(entries.count == 1_000 && entries.first?["email"] == "e10" && entries.last?["email"] == "e1009")
        var small = OobCodeLog(entriesMax: 1)
        for code in ["a", "b"] {
            small.apply(
                .remember(.init(email: "e", newEmail: nil, requestType: "PASSWORD_RESET", code: code, link: "l")))
        }
        #expect(small.json.array?.map { $0["oobCode"] } == ["b"])
    }

    // MARK: Custom tokens

    private func signIn(_ token: String, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial("signInWithCustomToken", ["token": .string(token)], outcomes, in: .emulator)
    }

    @Test func unsignedTokensAndJSONAreMadeAnew() {
        let claims: JSONObject = [
            "uid": "u1", "claims": ["a": 1], "aud": .string(CustomTokenSignIn.audience), "iat": 0, "exp": 0,
        ]
        for token in [
            #"{"uid":"u1","claims":{"a":1}}"#, CompactToken.text(header: ["alg": "none"], claims: claims),
            #"{"user_id":"u1","claims":{"a":1}}"#,
        ] {
            let trial = signIn(token, [.success(["token": "made"]), .success(Native.session(isNewUser: true))])
            #expect(trial.calls.map(\.method) == ["auth.customToken.create", "auth.signInWithCustomToken"])
            #expect(trial.calls.map(\.identity) == [.gateway, .none])
            #expect(trial.calls[0].params == ["uid": "u1", "claims": ["a": 1]])
            #expect(trial.calls[1].params == ["token": "made"])
            #expect(trial.json?["isNewUser"] == true)
        }
        #expect(signIn(#"{"uid":42}"#).params == ["uid": "42"])
        #expect(signIn(#"{"uid":true}"#).params == ["uid": "true"])
    }

    @Test func aSignedTokenIsOfTheServiceFirst() {
        let claims: JSONObject = ["uid": "u1", "aud": .string(CustomTokenSignIn.audience)]
        let foreign = Native.token(claims, algorithm: "RS256")
        let trial = signIn(
            foreign,
            [
                .refused(.unauthenticated, "CREDENTIAL_MISMATCH"), .success(["token": "made"]),
                .success(Native.session()),
            ])
        #expect(
            trial.calls.map(\.method) == [
                "auth.signInWithCustomToken", "auth.customToken.create", "auth.signInWithCustomToken",
            ])
        #expect(trial.status == 200)
        let own = signIn(Native.token(claims), [.refused(.invalidArgument, "INVALID_CUSTOM_TOKEN", "It has expired")])
        #expect(own.calls.count == 1 && own.message == "INVALID_CUSTOM_TOKEN : It has expired")
        let disabled = signIn(foreign, [.refused(.unauthenticated, "USER_DISABLED")])
        #expect(disabled.calls.count == 1 && disabled.message == "USER_DISABLED")
    }

    @Test(arguments: [
        ("", "MISSING_CUSTOM_TOKEN"), ("{", "INVALID_CUSTOM_TOKEN : The token is neither strict JSON nor a JWT."),
        ("nonsense", "INVALID_CUSTOM_TOKEN : Invalid assertion format"),
        ("a.b.", "INVALID_CUSTOM_TOKEN : Invalid assertion format"),
        ("{}", "MISSING_IDENTIFIER"), (#"{"uid":""}"#, "MISSING_IDENTIFIER"), (#"{"uid":{}}"#, "MISSING_IDENTIFIER"),
        (#"{"uid":"u","claims":[]}"#, "INVALID_CLAIMS"),
        (#"{"uid":"u","claims":{"firebase":1}}"#, "FORBIDDEN_CLAIM : firebase"),
        (
            "eyJhbGciOiJub25lIn0.eyJ1aWQiOiJ1In0.",
            "INVALID_CUSTOM_TOKEN : The audience (aud) is not that of custom tokens."
        ),
    ])
    func wrongCustomTokensAreRefused(token: String, message: String) {
        let trial = signIn(token)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test func everyReservedClaimIsRefused() {
        for name in [
            "acr", "amr", "at_hash", "aud", "auth_time", "azp", "cnf", "c_hash", "exp", "firebase", "iat", "iss", "jti",
            "nbf", "nonce", "sid", "sub",
        ] { #expect(signIn("{\"uid\":\"u\",\"claims\":{\"\(name)\":1}}").message == "FORBIDDEN_CLAIM : \(name)") }
    }
}
