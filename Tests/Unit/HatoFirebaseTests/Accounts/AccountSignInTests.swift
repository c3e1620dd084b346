import HatoModel
import Testing

@testable import HatoFirebase

/// Sign-ups and sign-ins, row by row (spec auth §3).
@Suite struct AccountSignInTests {
    private let tokens: JSONObject = [
        "idToken": .string(Native.idToken), "refreshToken": "r1", "expiresIn": "3600",
    ]

    private func body(_ members: JSONObject) -> JSONValue {
        var all = members
        for member in tokens.members { all[member.name] = member.value }
        return .object(all)
    }

    // MARK: signUp

    @Test func nothingGivenMakesAnAnonymousAccount() {
        let token = Native.token(["sub": "u1", "provider_id": "anonymous"])
        let trial = AccountTrial("signUp", ["returnSecureToken": true], [.success(Native.session(idToken: token))])
        #expect(trial.method == "auth.signUp" && trial.params == [:] && trial.calls[0].identity == .none)
        #expect(
            trial.json == [
                "kind": "identitytoolkit#SignupNewUserResponse", "localId": "u1", "idToken": .string(token),
                "refreshToken": "r1", "expiresIn": "3600",
            ])
    }

    @Test func anAddressAndAPasswordMakeAnAccount() {
        let request: JSONValue = ["email": "Masuo@Example.com", "password": "secret-1", "displayName": "マスオさん"]
        let trial = AccountTrial(
            .client("signUp", request).with { $0.locale = "ja" }, .test, [.success(Native.session(isNewUser: true))])
        #expect(
            trial.params == [
                "email": "Masuo@Example.com", "password": "secret-1", "displayName": "マスオさん", "locale": "ja",
            ])
        #expect(
            trial.json
                == body([
                    "kind": "identitytoolkit#SignupNewUserResponse", "localId": "u1", "email": "masuo@example.com",
                    "displayName": "マスオさん",
                ]))
    }

    @Test func anAnonymousAccountIsLinked() {
        let trial = AccountTrial("signUp", ["idToken": "t", "email": "a@b.c", "password": "password"])
        #expect(trial.params == ["email": "a@b.c", "password": "password", "idToken": "t"])
        let long = String(repeating: "t", count: 20_000)
        #expect(
            AccountTrial("signUp", ["idToken": .string(long), "email": "a@b.c", "password": "p"]).message
                == "INVALID_ID_TOKEN")
    }

    @Test(
        arguments: [
            (["localId": "u"], "UNEXPECTED_PARAMETER : User ID"), (["password": "p"], "MISSING_EMAIL"),
            (["email": "", "password": "p"], "MISSING_EMAIL"), (["idToken": "t"], "MISSING_EMAIL"),
            (["email": "a@b.c"], "MISSING_PASSWORD"), (["email": "a@b.c", "password": ""], "MISSING_PASSWORD"),
            (["email": ""], "INVALID_EMAIL"), (["email": "", "password": ""], "INVALID_EMAIL"),
            (["idToken": "t", "localId": "u"], "UNEXPECTED_PARAMETER : User ID"),
        ] as [(JSONValue, String)])
    func whatASignUpLacksIsSaidWithoutACall(request: JSONValue, message: String) {
        let trial = AccountTrial("signUp", request)
        #expect(trial.calls.isEmpty && trial.status == 400 && trial.message == message)
    }

    @Test(arguments: [
        (RPCError.Code.failedPrecondition, "OPERATION_NOT_ALLOWED"), (.permissionDenied, "ADMIN_ONLY_OPERATION"),
        (.invalidArgument, "INVALID_EMAIL"), (.alreadyExists, "EMAIL_EXISTS"), (.unauthenticated, "INVALID_ID_TOKEN"),
        (.unauthenticated, "TOKEN_EXPIRED"), (.notFound, "USER_NOT_FOUND"), (.unauthenticated, "USER_DISABLED"),
        (.alreadyExists, "PROVIDER_ALREADY_LINKED"), (.unauthenticated, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"),
    ])
    func refusalsOfASignUpKeepTheirCode(code: RPCError.Code, reason: String) {
        let trial = AccountTrial("signUp", ["email": "a@b.c", "password": "p"], [.refused(code, reason, "Why")])
        #expect(trial.status == 400 && trial.message == reason)
        #expect(trial.json?["error"]?["status"] == nil)
        #expect(
            trial.json?["error"]?["errors"] == [
                ["message": .string(reason), "domain": "global", "reason": "invalid"]
            ])
    }

    @Test func aWeakPasswordSaysWhy() {
        let trial = AccountTrial(
            "signUp", ["email": "a@b.c", "password": "p"],
            [
                .refused(.invalidArgument, "WEAK_PASSWORD", "Password should be at least 6 characters")
            ])
        #expect(trial.message == "WEAK_PASSWORD : Password should be at least 6 characters")
    }

    @Test func theFirstOfAFormsMistakesIsThatOfFirebase() {
        let problems: JSONValue = [
            [
                "parameter": "password", "reason": "WEAK_PASSWORD",
                "message": "Password should be at least 6 characters",
            ],
            ["parameter": "email", "reason": "INVALID_EMAIL", "message": "No address"],
        ]
        let error = RPCError(.invalidArgument, reason: "WEAK_PASSWORD", "Weak", data: ["problems": problems])
        #expect(AccountTrial("signUp", ["email": "a", "password": "p"], [.failure(error)]).message == "INVALID_EMAIL")
    }

    @Test func aSignUpThatGoesOnByMailSaysSo() {
        let trial = AccountTrial("signUp", ["email": "a@b.c", "password": "p"], [.success(["accepted": true])])
        #expect(trial.message?.hasPrefix("OPERATION_NOT_ALLOWED : A mail was sent") == true)
    }

    // MARK: signInWithPassword

    @Test func aPasswordSignsIn() {
        let request: JSONValue = ["email": "masuo@example.com", "password": "secret-1", "returnSecureToken": false]
        let trial = AccountTrial("signInWithPassword", request, [.success(Native.session())])
        #expect(trial.method == "auth.signIn")
        #expect(trial.params == ["email": "masuo@example.com", "password": "secret-1"])
        #expect(
            trial.json
                == body([
                    "kind": "identitytoolkit#VerifyPasswordResponse", "localId": "u1", "email": "masuo@example.com",
                    "displayName": "マスオさん", "registered": true,
                ]))
        let unnamed = Native.session(idToken: Native.token(["email": "a@b.c"]))
        #expect(AccountTrial("signInWithPassword", request, [.success(unnamed)]).json?["displayName"] == "")
    }

    @Test(
        arguments: [
            ([:], "MISSING_EMAIL"), (["email": "", "password": "p"], "INVALID_EMAIL"),
            (["email": "a"], "INVALID_EMAIL"),
            (["email": "a@b@c"], "INVALID_EMAIL"), (["email": "a@b.c"], "MISSING_PASSWORD"),
            (["email": "a@b.c", "password": ""], "MISSING_PASSWORD"),
        ] as [(JSONValue, String)])
    func whatASignInLacksIsSaidWithoutACall(request: JSONValue, message: String) {
        let trial = AccountTrial("signInWithPassword", request)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test(arguments: [
        (RPCError.Code.failedPrecondition, "PASSWORD_LOGIN_DISABLED"), (.unauthenticated, "INVALID_LOGIN_CREDENTIALS"),
        (.unauthenticated, "EMAIL_NOT_FOUND"), (.unauthenticated, "INVALID_PASSWORD"),
        (.unauthenticated, "USER_DISABLED"),
        (.invalidArgument, "INVALID_EMAIL"),
    ])
    func refusalsOfASignInKeepTheirCode(code: RPCError.Code, reason: String) {
        let trial = AccountTrial("signInWithPassword", ["email": "a@b.c", "password": "p"], [.refused(code, reason)])
        #expect(trial.status == 400 && trial.message == reason)
    }

    @Test func tooManyAttemptsAreAnEnvelopeThatSaysWhen() {
        let error = RPCError.resourceExhausted(
            reason: "TOO_MANY_ATTEMPTS_TRY_LATER", "Too many attempts; try again later", retryAfterMs: 1_500)
        let trial = AccountTrial("signInWithPassword", ["email": "a@b.c", "password": "p"], [.failure(error)])
        #expect(trial.status == 400)
        #expect(trial.message == "TOO_MANY_ATTEMPTS_TRY_LATER : Too many attempts; try again later")
        #expect(trial.response?.retryAfterSeconds == 2)
    }

    // MARK: signInWithCustomToken

    @Test func aCustomTokenSignsIn() {
        let trial = AccountTrial("signInWithCustomToken", ["token": "c"], [.success(Native.session(isNewUser: true))])
        #expect(trial.method == "auth.signInWithCustomToken" && trial.params == ["token": "c"])
        #expect(trial.json == body(["kind": "identitytoolkit#VerifyCustomTokenResponse", "isNewUser": true]))
        #expect(AccountTrial("signInWithCustomToken", ["token": ""]).message == "MISSING_CUSTOM_TOKEN")
    }

    @Test func refusalsOfACustomTokenKeepTheirCode() {
        func message(_ error: RPCError) -> String? {
            AccountTrial("signInWithCustomToken", ["token": "c"], [.failure(error)]).message
        }
        #expect(
            message(.invalidArgument("token", reason: "INVALID_CUSTOM_TOKEN", "It has expired"))
                == "INVALID_CUSTOM_TOKEN : It has expired")
        #expect(message(.unauthenticated(reason: "CREDENTIAL_MISMATCH", "")) == "CREDENTIAL_MISMATCH")
        #expect(message(.invalidArgument("token", reason: "MISSING_IDENTIFIER", "")) == "MISSING_IDENTIFIER")
        #expect(
            message(RPCError(.invalidArgument, reason: "FORBIDDEN_CLAIM", "", data: ["claim": "iss"]))
                == "FORBIDDEN_CLAIM : iss")
        #expect(message(.unauthenticated(reason: "USER_DISABLED", "")) == "USER_DISABLED")
    }

    @Test func anUnsignedCustomTokenIsOfTheServiceToRefuse() {
        let token = CompactToken.text(
            header: ["alg": "none"], claims: ["uid": "u", "aud": .string(CustomTokenSignIn.audience)])
        #expect(AccountTrial("signInWithCustomToken", ["token": .string(token)]).method == "auth.signInWithCustomToken")
    }

    // MARK: signInWithEmailLink

    @Test func aCodeOfAMailSignsIn() {
        let request: JSONValue = ["email": "masuo@example.com", "oobCode": "c1"]
        let trial = AccountTrial("signInWithEmailLink", request, [.success(Native.session(isNewUser: true))])
        #expect(trial.method == "auth.signInWithCode")
        #expect(trial.params == ["email": "masuo@example.com", "code": "c1", "createAccount": true])
        #expect(
            trial.json
                == body([
                    "kind": "identitytoolkit#EmailLinkSigninResponse", "email": "masuo@example.com", "localId": "u1",
                    "isNewUser": true,
                ]))
        let link = AccountTrial("signInWithEmailLink", ["email": "a@b.c", "oobCode": "c1", "idToken": "t"])
        #expect(link.params == ["email": "a@b.c", "code": "c1", "idToken": "t"])
    }

    @Test(
        arguments: [
            (["oobCode": "c"], "MISSING_EMAIL"), (["email": "a@b.c"], "MISSING_OOB_CODE"),
            (["email": "a", "oobCode": "c"], "INVALID_EMAIL"),
        ] as [(JSONValue, String)])
    func whatALinkLacksIsSaidWithoutACall(request: JSONValue, message: String) {
        #expect(AccountTrial("signInWithEmailLink", request).message == message)
    }

    @Test(arguments: [
        (RPCError.Code.failedPrecondition, "OPERATION_NOT_ALLOWED", "OPERATION_NOT_ALLOWED"),
        (.invalidArgument, "INVALID_OOB_CODE", "INVALID_OOB_CODE"),
        (.invalidArgument, "EXPIRED_OOB_CODE", "EXPIRED_OOB_CODE"),
        (
            .invalidArgument, "INVALID_EMAIL",
            "INVALID_EMAIL : The email provided does not match the sign-in email address."
        ),
        (.alreadyExists, "EMAIL_EXISTS", "EMAIL_EXISTS"), (.unauthenticated, "USER_DISABLED", "USER_DISABLED"),
    ])
    func refusalsOfALinkKeepTheirCode(code: RPCError.Code, reason: String, message: String) {
        let trial = AccountTrial("signInWithEmailLink", ["email": "a@b.c", "oobCode": "c"], [.refused(code, reason)])
        #expect(trial.message == message)
    }

    // MARK: createAuthUri

    @Test func methodsOfAnAddressAreListedWhereAccountsAreNotHidden() {
        let request: JSONValue = ["identifier": "a@b.c", "continueUri": "http://localhost", "sessionId": "s"]
        let known = AccountTrial(
            "createAuthUri", request,
            [
                .success(["registered": true, "methods": ["password", "emailLink", "google.com"]])
            ])
        #expect(known.method == "auth.signInMethods" && known.params == ["email": "a@b.c"])
        #expect(
            known.json == [
                "kind": "identitytoolkit#CreateAuthUriResponse", "allProviders": ["password", "google.com"],
                "registered": true, "signinMethods": ["password", "emailLink", "google.com"], "sessionId": "s",
            ])
        let hidden = AccountTrial("createAuthUri", request, [.success(["registered": false, "methods": []])])
        #expect(hidden.json == ["kind": "identitytoolkit#CreateAuthUriResponse", "sessionId": "s"])
    }

    @Test func anEmulatorSaysThatAnAddressIsUnknown() {
        let request: JSONValue = ["identifier": "a@b.c", "continueUri": "http://localhost"]
        let none: JSONValue = ["registered": false, "methods": []]
        let open = AccountTrial(
            "createAuthUri", request, [.success(Native.settings(["hidesWhoExists": false])), .success(none)],
            in: .emulator)
        #expect(open.calls.map(\.identity) == [.gateway, .none])
        #expect(
            open.json == [
                "kind": "identitytoolkit#CreateAuthUriResponse", "allProviders": [], "registered": false,
                "signinMethods": [], "sessionId": "abcdefghijklmnopqrstuvwxyz0",
            ])
        let hidden = AccountTrial(
            "createAuthUri", request, [.success(Native.settings(["hidesWhoExists": true])), .success(none)],
            in: .emulator)
        #expect(hidden.json?["registered"] == nil)
    }

    @Test(
        arguments: [
            ([:], "MISSING_IDENTIFIER"), (["identifier": "a@b.c"], "MISSING_CONTINUE_URI"),
            (["identifier": "a", "continueUri": "x"], "INVALID_IDENTIFIER"),
            (["identifier": "a@b.c", "continueUri": "x"], "INVALID_CONTINUE_URI"),
            (
                ["providerId": "google.com", "continueUri": "http://x"],
                "pop-up and redirect sign-in is not implemented"
            ),
        ] as [(JSONValue, String)])
    func whatCreateAuthUriLacksIsSaidWithoutACall(request: JSONValue, message: String) {
        #expect(AccountTrial("createAuthUri", request).message == message)
    }

    @Test func anAddressThatIsNoneIsAnInvalidIdentifier() {
        let request: JSONValue = ["identifier": "a@b", "continueUri": "http://x"]
        #expect(
            AccountTrial("createAuthUri", request, [.refused(.invalidArgument, "INVALID_EMAIL")]).message
                == "INVALID_IDENTIFIER")
    }

    // MARK: revokeToken

    @Test func aProvidersTokenHasNothingToRevoke() {
        let trial = AccountTrial(AccountRequest("POST", "/v2/accounts:revokeToken?key=k", body: Array("{}".utf8)))
        #expect(trial.status == 200 && trial.json == [:])
    }
}
