import HatoModel
import Testing

@testable import HatoFirebase

/// `lookup`, `update` and `delete` of users and administrators (spec auth §2, §3, §5).
@Suite struct AccountChangeTests {
    // MARK: lookup

    @Test func anAccountIsWrittenAsFirebaseDoes() {
        let trial = AccountTrial("lookup", ["idToken": "t"], [.success(Native.masuo)])
        #expect(trial.method == "auth.account.get" && trial.calls[0].identity == .credential("t"))
        let user: JSONValue = [
            "localId": "u1", "email": "masuo@example.com", "emailVerified": false, "displayName": "マスオさん",
            "passwordHash": "UkVEQUNURUQ=", "passwordUpdatedAt": 1_795_000_000_001,
            "providerUserInfo": [
                [
                    "providerId": "password", "rawId": "masuo@example.com", "federatedId": "masuo@example.com",
                    "email": "masuo@example.com", "displayName": "マスオさん",
                ]
            ],
            "validSince": "1795000000", "disabled": false, "lastLoginAt": "1795000000123", "createdAt": "1795000000000",
            "lastRefreshAt": "2026-11-18T11:06:40.123Z",
        ]
        #expect(trial.json == ["kind": "identitytoolkit#GetAccountInfoResponse", "users": [user]])
    }

    @Test func anAnonymousAccountHasNoProvidersAndNoPassword() {
        let user = AccountTrial("lookup", ["idToken": "t"], [.success(Native.account())]).json?["users"]?.array?.first
        #expect(
            user == [
                "localId": "u1", "emailVerified": false, "validSince": "1795000000", "disabled": false,
                "createdAt": "1795000000000",
            ])
    }

    @Test func everyMemberOfAnAccountHasItsForm() {
        let account = Native.account(
            "u1",
            [
                "phoneNumber": "+819012345678", "photoUrl": "p", "lastRefreshAt": 1_795_000_000_123,
                "customAttributes": "{\"a\":1}", "initialEmail": "i@b.c", "emailLinkSignin": true, "customAuth": true,
                "disabled": true, "username": "masuo",
                "providerUserInfo": [
                    ["providerId": "phone", "rawId": "+819012345678"], ["providerId": "google.com", "rawId": "110"],
                    ["providerId": "apple.com", "rawId": "000.1"],
                ],
            ])
        let user = AccountTrial("lookup", ["idToken": "t"], [.success(account)]).json?["users"]?.array?.first
        #expect(user?["lastRefreshAt"] == "2026-11-18T11:06:40.123Z")
        #expect(user?["phoneNumber"] == "+819012345678" && user?["photoUrl"] == "p" && user?["disabled"] == true)
        #expect(user?["customAttributes"] == "{\"a\":1}" && user?["initialEmail"] == "i@b.c")
        #expect(user?["emailLinkSignin"] == true && user?["customAuth"] == true)
        #expect(
            user?["providerUserInfo"] == [
                ["providerId": "phone", "rawId": "+819012345678", "phoneNumber": "+819012345678"],
                ["providerId": "google.com", "rawId": "110", "federatedId": "https://accounts.google.com/110"],
                ["providerId": "apple.com", "rawId": "000.1", "federatedId": "000.1"],
            ])
    }

    @Test func aSignInGivesTokensToo() {
        func refreshed(_ members: JSONObject) -> JSONValue? {
            AccountTrial("lookup", ["idToken": "t"], [.success(Native.account("u1", members))]).json?["users"]?.array?
                .first?["lastRefreshAt"]
        }
        #expect(refreshed([:]) == nil)
        #expect(refreshed(["lastLoginAt": 1_795_000_000_123]) == "2026-11-18T11:06:40.123Z")
        let both = refreshed(["lastLoginAt": 1_795_000_000_000, "lastRefreshAt": 1_795_000_000_123])
        #expect(both == "2026-11-18T11:06:40.123Z")
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"), (-1, "1970-01-01T00:00:00.000Z"),
            (Int64.max, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func timesAreOfRFC3339(milliseconds: Int64, text: String) { #expect(ShownAccount.rfc3339(milliseconds) == text) }

    @Test(arguments: [
        (RPCError.Code.unauthenticated, "INVALID_ID_TOKEN", "INVALID_ID_TOKEN"),
        (.unauthenticated, "TOKEN_EXPIRED", "TOKEN_EXPIRED"), (.notFound, "USER_NOT_FOUND", "USER_NOT_FOUND"),
        (.unauthenticated, "USER_DISABLED", "USER_DISABLED"),
        (.invalidParams, "credential_too_long", "INVALID_ID_TOKEN"),
        (.permissionDenied, "permission_denied", "INVALID_ID_TOKEN"),
        (.unauthenticated, "missing_credential", "INVALID_ID_TOKEN"),
    ])
    func refusalsOfALookupKeepTheirCode(code: RPCError.Code, reason: String, message: String) {
        let trial = AccountTrial("lookup", ["idToken": "t"], [.refused(code, reason)])
        #expect(trial.status == 400 && trial.message == message)
    }

    @Test func aLookupWithoutTokenIsRefused() {
        #expect(AccountTrial("lookup", [:]).message == "MISSING_ID_TOKEN")
        #expect(AccountTrial("lookup", ["idToken": ""]).message == "MISSING_ID_TOKEN")
        let long = String(repeating: "t", count: 20_000)
        #expect(AccountTrial("lookup", ["idToken": .string(long)]).message == "INVALID_ID_TOKEN")
    }

    @Test func administratorsLookUpSeveralAndEachOnce() {
        let trial = AccountTrial(
            .administrator(
                "POST", "/accounts:lookup",
                [
                    "localId": ["u1", "gone"], "email": ["masuo@example.com", "no address"], "phoneNumber": ["+81"],
                    "federatedUserId": [["providerId": "google.com", "rawId": "110"], ["providerId": "x"]],
                ]), .test,
            [
                .success(Native.masuo), .refused(.notFound, "USER_NOT_FOUND"), .success(Native.masuo),
                .refused(.invalidArgument, "INVALID_EMAIL"), .success(Native.account("u2")),
                .success(Native.account("u3")),
            ])
        #expect(
            trial.calls.map { JSONValue.object($0.params) } == [
                ["uid": "u1"], ["uid": "gone"], ["email": "masuo@example.com"], ["email": "no address"],
                ["phoneNumber": "+81"], ["provider": "google.com", "providerUid": "110"],
            ])
        #expect(Set(trial.calls.map(\.identity)) == [.credential(AccountTrial.key)])
        #expect(trial.json?["users"]?.array?.map { $0["localId"] } == ["u1", "u2", "u3"])
    }

    @Test func withoutAccountsThereIsNoMember() {
        let none: JSONValue = ["kind": "identitytoolkit#GetAccountInfoResponse"]
        let gone = AccountTrial(
            .administrator("POST", "/accounts:lookup", ["localId": ["gone"]]), .test,
            [.refused(.notFound, "USER_NOT_FOUND")])
        #expect(gone.json == none)
        #expect(AccountTrial(.administrator("POST", "/accounts:lookup", [:])).json == none)
    }

    @Test func aLookupIsBounded() {
        let many = JSONValue.array((0..<101).map { .string("u\($0)") })
        #expect(AccountTrial(.administrator("POST", "/accounts:lookup", ["localId": many])).status == 400)
        #expect(AccountTrial(.administrator("POST", "/accounts:lookup", ["initialEmail": ["a@b.c"]])).status == 501)
    }

    @Test func aLookupEndsWithTheService() {
        let request = AccountRequest.administrator("POST", "/accounts:lookup", ["localId": ["a", "b"]])
        let trial = AccountTrial(request, .test, [.success(Native.masuo), .refused(.unavailable, "store_closed")])
        #expect(trial.status == 503)
    }

    /// A hash takes a hundred times as long as a refresh: it must not stand in front of one.
    @Test func callsThatMakeAHashHoldOthers() {
        func holds(_ request: AccountRequest) -> Bool? { AccountTrial(request).calls.first?.holdsOthers }
        #expect(holds(.client("update", ["idToken": "t", "password": "p"])) == true)
        #expect(holds(.client("update", ["idToken": "t", "displayName": "A"])) == false)
        #expect(holds(.client("resetPassword", ["oobCode": "c", "newPassword": "p"])) == true)
        #expect(holds(.client("resetPassword", ["oobCode": "c"])) == false)
        #expect(holds(.administrator("POST", "/accounts", ["localId": "u", "password": "p"])) == true)
        #expect(holds(.administrator("POST", "/accounts", ["localId": "u"])) == false)
        #expect(holds(.administrator("POST", "/accounts:batchCreate", ["users": [["localId": "u"]]])) == true)
        // Their responses come when they are ready.
        #expect(holds(.client("signInWithPassword", ["email": "a@b.c", "password": "p"])) == false)
        #expect(holds(.client("signUp", ["email": "a@b.c", "password": "p"])) == false)
    }

    // MARK: delete

    @Test func usersAndAdministratorsDelete() {
        let own = AccountTrial("delete", ["idToken": "t"], [.success([:])])
        #expect(own.method == "auth.account.delete" && own.calls[0].identity == .credential("t"))
        #expect(own.json == ["kind": "identitytoolkit#DeleteAccountResponse"])
        let other = AccountTrial(.administrator("POST", "/accounts:delete", ["localId": "u1"]), .test, [.success([:])])
        #expect(other.method == "auth.users.delete" && other.params == ["uid": "u1"])
        #expect(other.json == own.json)
        #expect(AccountTrial("delete", [:]).message == "MISSING_ID_TOKEN")
        #expect(AccountTrial(.administrator("POST", "/accounts:delete", [:])).message == "MISSING_LOCAL_ID")
        #expect(
            AccountTrial("delete", ["idToken": "t"], [.refused(.unauthenticated, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")])
                .message == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
        #expect(
            AccountTrial(
                .administrator("POST", "/accounts:delete", ["localId": "u"]), .test,
                [.refused(.notFound, "USER_NOT_FOUND")]
            ).message == "USER_NOT_FOUND")
    }

    // MARK: update of users

    private func updated(_ refreshToken: String?) -> JSONValue {
        var result = Native.masuo.object ?? [:]
        result["idToken"] = "i2"
        result["refreshToken"] = .text(refreshToken)
        result["expiresIn"] = 3600
        result["isNewUser"] = false
        return .object(result)
    }

    @Test func aNewNameBringsTheAccountAndNoTokens() {
        let trial = AccountTrial(
            "update", ["idToken": "t", "displayName": "A", "photoUrl": "p", "returnSecureToken": true],
            [.success(updated(nil))])
        #expect(trial.method == "auth.account.update" && trial.params == ["displayName": "A", "photoUrl": "p"])
        #expect(
            trial.json == [
                "kind": "identitytoolkit#SetAccountInfoResponse", "localId": "u1", "email": "masuo@example.com",
                "displayName": "マスオさん", "emailVerified": false, "passwordHash": "UkVEQUNURUQ=",
                "providerUserInfo": trial.json?["providerUserInfo"] ?? .null,
            ])
        #expect(trial.json?["providerUserInfo"]?.array?.count == 1)
    }

    @Test func aNewAddressOrPasswordBringsTokens() {
        let email = AccountTrial("update", ["idToken": "t", "email": "M@example.com"], [.success(updated("r2"))])
        #expect(email.params == ["email": "M@example.com"])
        #expect(email.json?["newEmail"] == "masuo@example.com")
        #expect(
            email.json?["idToken"] == "i2" && email.json?["refreshToken"] == "r2" && email.json?["expiresIn"] == "3600")
        let password = AccountTrial("update", ["idToken": "t", "password": "secret"], [.success(updated("r2"))])
        #expect(password.params == ["password": "secret"])
        #expect(password.json?["newEmail"] == nil && password.json?["idToken"] == "i2")
    }

    @Test func attributesAndProvidersAreDeleted() {
        let names: JSONValue = [
            "idToken": "t", "deleteAttribute": ["DISPLAY_NAME", "PHOTO_URL", "PASSWORD", "EMAIL", 0],
            "deleteProvider": ["google.com", "phone"], "displayName": "ignored",
        ]
        let trial = AccountTrial("update", names)
        #expect(
            trial.params == [
                "deleteAttributes": ["email", "password", "displayName", "photoUrl"],
                "deleteProviders": ["google.com", "phone"],
            ])
        let positions = AccountTrial("update", ["idToken": "t", "deleteAttribute": [2, 4]])
        #expect(positions.params == ["deleteAttributes": ["displayName", "photoUrl"]])
        let empty = AccountTrial("update", ["idToken": "t", "displayName": "", "photo_url": ""])
        #expect(empty.params == ["deleteAttributes": ["displayName", "photoUrl"]])
        #expect(AccountTrial("update", ["idToken": "t", "deleteAttribute": "PROVIDER"]).status == 501)
    }

    @Test func anUpdateOfNothingIsALookup() {
        let trial = AccountTrial("update", ["idToken": "t", "displayName": nil, "email": ""], [.success(Native.masuo)])
        #expect(trial.method == "auth.account.get")
        #expect(trial.json?["kind"] == "identitytoolkit#SetAccountInfoResponse" && trial.json?["localId"] == "u1")
    }

    @Test(
        arguments: [
            ([:], "INVALID_REQ_TYPE : Unsupported request parameters."),
            (["email": "a@b.c"], "INVALID_REQ_TYPE : Unsupported request parameters."),
            (["idToken": "t", "customAttributes": "{}"], "INSUFFICIENT_PERMISSION"),
            (["idToken": "t", "linkProviderUserInfo": [:]], "INSUFFICIENT_PERMISSION"),
            (["idToken": "t", "disableUser": true], "OPERATION_NOT_ALLOWED"),
            (["idToken": "t", "mfa": [:]], "mfa is not implemented"),
            (["idToken": "t", "deletePasskey": ["k"]], "deletePasskey is not implemented"),
            (["idToken": "t", "upgradeToFederatedLogin": true], "upgradeToFederatedLogin is not implemented"),
        ] as [(JSONValue, String)])
    func whatUsersMayNotChangeIsSaidWithoutACall(body: JSONValue, message: String) {
        let trial = AccountTrial("update", body)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test(arguments: [
        (RPCError.Code.unauthenticated, "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"), (.invalidArgument, "INVALID_EMAIL"),
        (.alreadyExists, "EMAIL_EXISTS"), (.failedPrecondition, "EMAIL_CHANGE_NEEDS_VERIFICATION"),
        (.unauthenticated, "TOKEN_EXPIRED"),
    ])
    func refusalsOfAnUpdateKeepTheirCode(code: RPCError.Code, reason: String) {
        #expect(AccountTrial("update", ["idToken": "t", "email": "a@b.c"], [.refused(code, reason)]).message == reason)
    }

    @Test func theLastWayInStays() {
        let trial = AccountTrial(
            "update", ["idToken": "t", "deleteProvider": ["google.com"]],
            [.refused(.failedPrecondition, "LAST_SIGN_IN_METHOD")])
        #expect(trial.message == "OPERATION_NOT_ALLOWED : The account would have no way to sign in.")
    }

    @Test func aCodeAloneIsApplied() {
        let verified = AccountTrial(
            "update", ["oobCode": "c"], [.success(["type": "verifyEmail", "email": "a@b.c"])])
        #expect(verified.method == "auth.code.apply" && verified.params == ["code": "c"])
        #expect(
            verified.json == [
                "kind": "identitytoolkit#SetAccountInfoResponse", "email": "a@b.c", "emailVerified": true,
            ])
        let changed = AccountTrial(
            "update", ["oobCode": "c"], [.success(["type": "changeEmail", "email": "a@b.c", "newEmail": "n@b.c"])])
        #expect(changed.json?["email"] == "n@b.c" && changed.json?["newEmail"] == "n@b.c")
        for reason in ["INVALID_OOB_CODE", "MISSING_PASSWORD", "MISSING_EMAIL"] {
            let refused = AccountTrial("update", ["oobCode": "c"], [.refused(.invalidArgument, reason)])
            #expect(refused.message == "INVALID_OOB_CODE")
        }
        let expired = AccountTrial("update", ["oobCode": "c"], [.refused(.invalidArgument, "EXPIRED_OOB_CODE")])
        #expect(expired.message == "EXPIRED_OOB_CODE")
        #expect(
            AccountTrial("update", ["oobCode": "c"], [.refused(.alreadyExists, "EMAIL_EXISTS")]).message
                == "EMAIL_EXISTS")
    }

    // MARK: update of administrators

    private func update(_ body: JSONValue, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(.administrator("POST", "/accounts:update", body), .test, outcomes)
    }

    @Test func administratorsChangeEverything() {
        let trial = update(
            [
                "localId": "u1", "email": "a@b.c", "password": "secret", "displayName": "A", "photoUrl": "p",
                "phoneNumber": "+81", "emailVerified": true, "disableUser": true, "customAttributes": "{\"a\":1}",
                "deleteProvider": ["google.com"],
                "linkProviderUserInfo": [
                    "providerId": "apple.com", "rawId": "1", "email": "x@y.z", "federatedId": "f",
                ],
            ], [.success(Native.masuo)])
        #expect(trial.calls.map(\.method) == ["auth.users.update"])
        #expect(
            trial.params == [
                "uid": "u1", "email": "a@b.c", "emailVerified": true, "password": "secret", "displayName": "A",
                "photoUrl": "p", "phoneNumber": "+81", "disabled": true, "customAttributes": "{\"a\":1}",
                "deleteProviders": ["google.com"],
                "linkProviderUserInfo": ["providerId": "apple.com", "rawId": "1", "email": "x@y.z"],
            ])
        #expect(trial.json?["localId"] == "u1" && trial.json?["idToken"] == nil)
    }

    @Test func validSinceRevokesAfterTheChange() {
        let only = update(["localId": "u1", "validSince": "1795000000"], [.success(Native.masuo)])
        #expect(only.calls.map(\.method) == ["auth.users.revoke"] && only.params == ["uid": "u1"])
        let both = update(
            ["localId": "u1", "validSince": 1_795_000_000, "disableUser": false],
            [.success(Native.masuo), .success(Native.masuo)])
        #expect(both.calls.map(\.method) == ["auth.users.update", "auth.users.revoke"])
        #expect(
            update(["localId": "u1", "validSince": "0"], [.success(Native.masuo)]).calls.map(\.method) == [
                "auth.users.get"
            ])
        #expect(update(["localId": "u1", "validSince": "soon"]).status == 400)
        let failed = update(
            ["localId": "u1", "validSince": 1, "disableUser": true],
            [.success(Native.masuo), .refused(.unavailable, "stopping")])
        #expect(failed.status == 504)
    }

    @Test func aNumberGoesWithItsProvider() {
        let trial = update(["localId": "u1", "phoneNumber": "+81", "deleteProvider": ["phone"], "customAttributes": ""])
        #expect(trial.params == ["uid": "u1", "customAttributes": "{}", "deleteProviders": ["phone"]])
    }

    @Test(
        arguments: [
            ([:], "MISSING_LOCAL_ID"), (["idToken": "t"], "MISSING_LOCAL_ID"),
            (["localId": "u", "customAttributes": "[]"], "INVALID_CLAIMS"),
            (["localId": "u", "customAttributes": "{"], "INVALID_CLAIMS"),
            (
                [
                    "localId": "u",
                    "customAttributes": .string("{\"a\":\"" + String(repeating: "x", count: 1000) + "\"}"),
                ], "CLAIMS_TOO_LARGE"
            ),
            (["localId": "u", "customAttributes": "{\"sub\":1}"], "FORBIDDEN_CLAIM : sub"),
            (["localId": "u", "customAttributes": "{\"sid\":1}"], "FORBIDDEN_CLAIM : sid"),
            (["localId": "u", "linkProviderUserInfo": ["rawId": "1"]], "MISSING_PROVIDER_ID"),
            (["localId": "u", "linkProviderUserInfo": ["providerId": "x"]], "MISSING_RAW_ID"),
        ] as [(JSONValue, String)])
    func whatAdministratorsGetWrongIsSaidWithoutACall(body: JSONValue, message: String) {
        let trial = update(body)
        #expect(trial.calls.isEmpty && trial.message == message)
    }

    @Test func refusalsOfAnAdministratorsUpdateKeepTheirCode() {
        #expect(
            update(["localId": "u", "phoneNumber": "x"], [.refused(.invalidArgument, "INVALID_PHONE_NUMBER")]).message
                == "INVALID_PHONE_NUMBER : Invalid format.")
        for (code, reason) in [
            (RPCError.Code.notFound, "USER_NOT_FOUND"), (.alreadyExists, "PHONE_NUMBER_EXISTS"),
            (.alreadyExists, "FEDERATED_USER_ID_ALREADY_LINKED"),
        ] {
            #expect(update(["localId": "u", "phoneNumber": "x"], [.refused(code, reason)]).message == reason)
        }
    }

    // MARK: accounts

    @Test func administratorsMakeAccountsWithoutTokens() {
        let trial = AccountTrial(
            .administrator(
                "POST", "/accounts",
                [
                    "localId": "u1", "email": "masuo@example.com", "password": "secret", "displayName": "A",
                    "photoUrl": "p",
                    "phoneNumber": "+81", "emailVerified": true, "disabled": false,
                ]), .test, [.success(Native.masuo)])
        #expect(trial.method == "auth.users.create")
        #expect(
            trial.params == [
                "uid": "u1", "email": "masuo@example.com", "emailVerified": true, "password": "secret",
                "displayName": "A",
                "photoUrl": "p", "phoneNumber": "+81", "disabled": false,
            ])
        #expect(
            trial.json == [
                "kind": "identitytoolkit#SignupNewUserResponse", "localId": "u1", "email": "masuo@example.com",
                "displayName": "マスオさん",
            ])
        #expect(AccountTrial(.administrator("POST", "/accounts", ["email": "", "password": ""])).params == [:])
        #expect(AccountTrial(.administrator("POST", "/accounts", ["mfaInfo": [[:]]])).status == 501)
    }

    @Test(arguments: [
        ("DUPLICATE_LOCAL_ID", "DUPLICATE_LOCAL_ID"), ("EMAIL_EXISTS", "EMAIL_EXISTS"),
        ("PHONE_NUMBER_EXISTS", "PHONE_NUMBER_EXISTS"),
        ("INVALID_PHONE_NUMBER", "INVALID_PHONE_NUMBER : Invalid format."),
        ("WEAK_PASSWORD", "WEAK_PASSWORD : Why"), ("INVALID_LOCAL_ID", "INVALID_LOCAL_ID"),
    ])
    func refusalsOfACreationKeepTheirCode(reason: String, message: String) {
        let trial = AccountTrial(
            .administrator("POST", "/accounts", [:]), .test, [.refused(.alreadyExists, reason, "Why")])
        #expect(trial.message == message)
    }
}
