import HatoModel
import Testing

@testable import HatoFirebase

/// `sendOobCode` and `resetPassword` (spec auth §3, §6).
@Suite struct AccountCodeTests {
    @Test func aMailIsRequested() {
        let trial = AccountTrial(
            .client(
                "sendOobCode",
                ["requestType": "PASSWORD_RESET", "email": "A@b.c", "continueUrl": "https://chat.example.com/x"]
            )
            .with { $0.locale = "ja-JP" },
            .test, [.success(["email": "a@b.c"])])
        #expect(trial.method == "auth.code.request" && trial.calls[0].identity == .none)
        #expect(
            trial.params == [
                "type": "passwordReset", "email": "A@b.c", "continueUrl": "https://chat.example.com/x",
                "locale": "ja-JP",
            ])
        #expect(trial.json == ["kind": "identitytoolkit#GetOobConfirmationCodeResponse", "email": "a@b.c"])
    }

    @Test func typesAreNamesOrPositions() {
        let types: [(JSONValue, JSONValue)] = [
            (["requestType": 1, "email": "a@b.c"], ["type": "passwordReset", "email": "a@b.c"]),
            (
                ["requestType": "EMAIL_SIGNIN", "email": "a@b.c", "canHandleCodeInApp": true],
                ["type": "signIn", "email": "a@b.c"]
            ),
            (["requestType": 4, "idToken": "t"], ["type": "verifyEmail"]),
            (
                ["requestType": "VERIFY_AND_CHANGE_EMAIL", "idToken": "t", "newEmail": "n@b.c"],
                ["type": "changeEmail", "newEmail": "n@b.c"]
            ),
        ]
        for (body, params) in types { #expect(AccountTrial("sendOobCode", body).params == params) }
        #expect(AccountTrial("sendOobCode", ["requestType": 4, "idToken": "t"]).calls[0].identity == .credential("t"))
    }

    @Test(
        arguments: [
            ([:], "MISSING_REQ_TYPE"), (["requestType": 0], "MISSING_REQ_TYPE"),
            (["requestType": "PASSWORD_RESET", "returnOobLink": true], "INSUFFICIENT_PERMISSION"),
            (
                ["requestType": "PASSWORD_RESET", "continueUrl": "x"],
                "INVALID_CONTINUE_URI : An absolute URI with scheme and host is expected."
            ),
            (["requestType": "PASSWORD_RESET"], "MISSING_EMAIL"),
            (["requestType": "EMAIL_SIGNIN", "email": ""], "MISSING_EMAIL"),
            (["requestType": "VERIFY_EMAIL"], "INVALID_ID_TOKEN"),
            (["requestType": "VERIFY_AND_CHANGE_EMAIL"], "MISSING_NEW_EMAIL"),
            (["requestType": "VERIFY_AND_CHANGE_EMAIL", "newEmail": "n@b.c"], "MISSING_ID_TOKEN"),
            (["requestType": "RECOVER_EMAIL"], "requestType RECOVER_EMAIL is not implemented"),
            (["requestType": "OLD_EMAIL_AGREE"], "requestType OLD_EMAIL_AGREE is not implemented"),
        ] as [(JSONValue, String)])
    func whatARequestLacksIsSaidInTheOrderOfChecks(body: JSONValue, message: String) {
        let trial = AccountTrial("sendOobCode", body)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test func anUnauthorizedDomainComesBeforeAMissingAddress() {
        let body: JSONValue = ["requestType": "PASSWORD_RESET", "continueUrl": "https://evil.example"]
        let trial = AccountTrial("sendOobCode", body, [.refused(.invalidArgument, "UNAUTHORIZED_DOMAIN")])
        #expect(trial.message == "UNAUTHORIZED_DOMAIN")
    }

    @Test func anotherLinkDomainIsRefusedInFirebasesWords() {
        let body: JSONValue = ["requestType": "EMAIL_SIGNIN", "email": "a@b.c", "linkDomain": "cool.link"]
        #expect(
            AccountTrial("sendOobCode", body).message == """
                INVALID_HOSTING_LINK_DOMAIN: The provided hosting link domain is not configured in Firebase Hosting \
                or is not owned by the current project. This cannot be a default hosting domain (web.app or \
                firebaseapp.com).
                """)
        var context = AccountContext.test
        context.linkDomains = ["cool.link"]
        #expect(AccountTrial("sendOobCode", body, in: context).calls.count == 1)
    }

    @Test(arguments: [
        (RPCError.Code.unauthenticated, "EMAIL_NOT_FOUND", "EMAIL_NOT_FOUND"),
        (.notFound, "USER_NOT_FOUND", "USER_NOT_FOUND"),
        (.alreadyExists, "EMAIL_EXISTS", "EMAIL_EXISTS"),
        (.invalidArgument, "INVALID_CONTINUE_URI", "INVALID_CONTINUE_URI"),
        (.failedPrecondition, "OPERATION_NOT_ALLOWED", "OPERATION_NOT_ALLOWED"),
        (.failedPrecondition, "mail_not_configured", "OPERATION_NOT_ALLOWED : This service sends no mail."),
        (.permissionDenied, "INSUFFICIENT_PERMISSION", "INSUFFICIENT_PERMISSION"),
        (.resourceExhausted, "RESET_PASSWORD_EXCEED_LIMIT", "RESET_PASSWORD_EXCEED_LIMIT"),
        (.resourceExhausted, "TOO_MANY_ATTEMPTS_TRY_LATER", "TOO_MANY_ATTEMPTS_TRY_LATER : Why"),
    ])
    func refusalsOfARequestKeepTheirCode(code: RPCError.Code, reason: String, message: String) {
        let trial = AccountTrial(
            "sendOobCode", ["requestType": "PASSWORD_RESET", "email": "a@b.c"], [.refused(code, reason, "Why")])
        #expect(trial.status == 400 && trial.message == message)
    }

    @Test func administratorsGetTheCodeAndALink() {
        let body: JSONValue = ["requestType": "PASSWORD_RESET", "email": "a@b.c", "returnOobLink": true]
        let request = AccountRequest.administrator("POST", "/accounts:sendOobCode", body)
        let own = AccountTrial(request, .test, [.success(["email": "a@b.c", "code": "c-1", "digits": "483920"])])
        #expect(own.params == ["type": "passwordReset", "email": "a@b.c", "returnCode": true])
        #expect(own.calls[0].identity == .credential(AccountTrial.key))
        #expect(
            own.json == [
                "kind": "identitytoolkit#GetOobConfirmationCodeResponse", "email": "a@b.c", "oobCode": "c-1",
                "oobLink": "http://127.0.0.1:7700/__/auth/action?mode=resetPassword&lang=en&oobCode=c-1&apiKey=demo",
            ])
        let page = AccountTrial(
            request, .test,
            [
                .success([
                    "email": "a@b.c", "code": "c-1",
                    "link": "https://chat.example.com/a?mode=resetPassword&oobCode=c-1",
                ])
            ])
        #expect(page.json?["oobLink"] == "https://chat.example.com/a?mode=resetPassword&oobCode=c-1&apiKey=demo")
        #expect(own.response?.effect == nil)
        // Without a page of the service, the link has the URL of the request.
        var continued = body.object ?? [:]
        continued["continueUrl"] = "https://chat.example.com/x?a=1"
        let link = AccountTrial(
            .administrator("POST", "/accounts:sendOobCode", .object(continued)), .test,
            [.success(["email": "a@b.c", "code": "c-1"])]
        ).json?["oobLink"]?.string
        #expect(link?.hasSuffix("&apiKey=demo&continueUrl=https%3A%2F%2Fchat.example.com%2Fx%3Fa%3D1") == true)
    }

    @Test func administratorsNameTheAddressOfAVerification() {
        let body: JSONValue = ["requestType": "VERIFY_EMAIL", "email": "a@b.c", "returnOobLink": true]
        let trial = AccountTrial(
            .administrator("POST", "/accounts:sendOobCode", body), .test, [.refused(.notFound, "USER_NOT_FOUND")])
        #expect(trial.params == ["type": "verifyEmail", "email": "a@b.c", "returnCode": true])
        #expect(trial.message == "USER_NOT_FOUND")
        #expect(
            AccountTrial(.administrator("POST", "/accounts:sendOobCode", ["requestType": 4])).message == "MISSING_EMAIL"
        )
    }

    @Test func aLocaleThatIsNoneIsLeftOut() {
        for locale in ["", "x", "ja JP", "ja-", "日本", String(repeating: "a", count: 40)] {
            let request = AccountRequest.client("sendOobCode", ["requestType": 1, "email": "a@b.c"]).with {
                $0.locale = locale
            }
            #expect(AccountTrial(request).params == ["type": "passwordReset", "email": "a@b.c"], "\(locale)")
        }
    }

    // MARK: resetPassword

    @Test(arguments: [
        ("passwordReset", "PASSWORD_RESET"), ("verifyEmail", "VERIFY_EMAIL"), ("signIn", "EMAIL_SIGNIN"),
        ("changeEmail", "VERIFY_AND_CHANGE_EMAIL"), ("recoverEmail", "RECOVER_EMAIL"), ("invite", "PASSWORD_RESET"),
        ("signUp", "PASSWORD_RESET"),
    ])
    func aCodeIsCheckedAndItsTypeNamed(type: String, requestType: String) {
        let trial = AccountTrial("resetPassword", ["oobCode": "c"], [.success(["type": .string(type)])])
        #expect(trial.method == "auth.code.check" && trial.params == ["code": "c"])
        #expect(trial.json == ["kind": "identitytoolkit#ResetPasswordResponse", "requestType": .string(requestType)])
    }

    @Test func aNewPasswordIsSet() {
        let trial = AccountTrial(
            "resetPassword", ["oobCode": "c", "newPassword": "secret"],
            [.success(["type": "passwordReset", "email": "a@b.c"])])
        #expect(trial.method == "auth.code.apply" && trial.params == ["code": "c", "newPassword": "secret"])
        #expect(
            trial.json == [
                "kind": "identitytoolkit#ResetPasswordResponse", "requestType": "PASSWORD_RESET", "email": "a@b.c",
            ])
        let change = AccountTrial(
            "resetPassword", ["oobCode": "c"],
            [.success(["type": "changeEmail", "email": "a@b.c", "newEmail": "n@b.c"])])
        #expect(change.json?["newEmail"] == "n@b.c")
    }

    @Test(arguments: [
        (RPCError.Code.failedPrecondition, "PASSWORD_LOGIN_DISABLED", "PASSWORD_LOGIN_DISABLED"),
        (.invalidArgument, "INVALID_OOB_CODE", "INVALID_OOB_CODE"),
        (.invalidArgument, "EXPIRED_OOB_CODE", "EXPIRED_OOB_CODE"),
        (.invalidArgument, "INVALID_REQ_TYPE", "INVALID_OOB_CODE"),
        (.invalidArgument, "MISSING_EMAIL", "INVALID_OOB_CODE"),
        (.invalidArgument, "WEAK_PASSWORD", "WEAK_PASSWORD : Why"),
    ])
    func refusalsOfAResetKeepTheirCode(code: RPCError.Code, reason: String, message: String) {
        let trial = AccountTrial(
            "resetPassword", ["oobCode": "c", "newPassword": "p"], [.refused(code, reason, "Why")])
        #expect(trial.message == message)
        #expect(AccountTrial("resetPassword", ["newPassword": "p"]).message == "MISSING_OOB_CODE")
        #expect(AccountTrial("resetPassword", ["oldPassword": "p", "email": "a@b.c"]).status == 501)
    }
}
