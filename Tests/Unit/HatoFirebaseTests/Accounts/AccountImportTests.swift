import HatoModel
import Testing

@testable import HatoFirebase

/// `batchCreate` (spec auth §7).
@Suite struct AccountImportTests {
    private func post(_ body: JSONValue, _ outcomes: [Result<JSONValue, RPCError>] = []) -> AccountTrial {
        AccountTrial(.administrator("POST", "/accounts:batchCreate", body), .test, outcomes)
    }

    private let done: Result<JSONValue, RPCError> = .success(["imported": 1, "errors": []])

    @Test func rowsAndParametersArePassedOn() {
        let trial = post(
            [
                "users": [
                    [
                        "localId": "u1", "email": "a@b.c", "displayName": "A", "photoUrl": "p", "phoneNumber": "+81",
                        "emailVerified": true, "disabled": false, "customAttributes": "{}", "createdAt": "1000",
                        "lastLoginAt": 1001, "passwordHash": "aGFzaA==", "salt": "c2FsdA==",
                        "providerUserInfo": [
                            ["providerId": "google.com", "rawId": "110", "displayName": "G"],
                            ["providerId": "password", "rawId": "a@b.c"], ["providerId": "phone"],
                        ],
                    ]
                ], "hashAlgorithm": "SCRYPT", "signerKey": "a2V5", "saltSeparator": "Bw==", "rounds": "8",
                "memoryCost": 14,
                "passwordHashOrder": "SALT_AND_PASSWORD", "allowOverwrite": true, "sanityCheck": true,
            ], [done])
        #expect(trial.method == "auth.users.import" && trial.calls[0].identity == .credential(AccountTrial.key))
        #expect(
            trial.params == [
                "users": [
                    [
                        "uid": "u1", "email": "a@b.c", "emailVerified": true, "displayName": "A", "photoUrl": "p",
                        "phoneNumber": "+81", "disabled": false, "customAttributes": "{}", "createdAt": 1000,
                        "lastLoginAt": 1001, "passwordHash": "aGFzaA==", "salt": "c2FsdA==",
                        "providerUserInfo": [["providerId": "google.com", "rawId": "110", "displayName": "G"]],
                    ]
                ], "hashAlgorithm": "SCRYPT", "signerKey": "a2V5", "saltSeparator": "Bw==", "rounds": 8,
                "memoryCost": 14,
                "passwordHashOrder": "SALT_AND_PASSWORD", "allowOverwrite": true,
            ])
        #expect(trial.json == ["kind": "identitytoolkit#UploadAccountResponse"])
    }

    @Test(arguments: Auth.HashAlgorithm.allCases)
    func everyHashIsTaken(algorithm: Auth.HashAlgorithm) {
        let trial = post([
            "users": [["localId": "u"]], "hashAlgorithm": .string(algorithm.rawValue), "cpuMemCost": 16384,
            "blockSize": 8, "parallelization": 1, "dkLen": 64,
        ])
        #expect(trial.params?["hashAlgorithm"] == .string(algorithm.rawValue) && trial.params?["cpuMemCost"] == 16384)
        #expect(
            trial.params?["blockSize"] == 8 && trial.params?["parallelization"] == 1 && trial.params?["dkLen"] == 64)
    }

    @Test(
        arguments: [
            ([:], "MISSING_USER_ACCOUNT"), (["users": []], "MISSING_USER_ACCOUNT"),
            (["users": [["localId": "a"], ["localId": "a"]]], "DUPLICATE_LOCAL_ID : a"),
            (
                ["users": [["localId": "a", "email": "x@y.z"], ["localId": "b", "email": "X@y.z"]]],
                "DUPLICATE_EMAIL : x@y.z"
            ),
            (["users": [["localId": "a"]], "hashAlgorithm": "ROT13"], "INVALID_HASH_ALGORITHM"),
            (["users": .array((0...1000).map { ["localId": .string("u\($0)")] })], "MAXIMUM_USER_COUNT_EXCEEDED"),
        ] as [(JSONValue, String)])
    func whatRefusesTheWholeRequestIsSaidWithoutACall(body: JSONValue, message: String) {
        let trial = post(body)
        #expect(trial.calls.isEmpty && trial.status == 400 && trial.message == message)
    }

    @Test func anIdentityOfTwoRowsRefusesTheWholeRequest() {
        let google: JSONValue = [["providerId": "google.com", "rawId": "110"]]
        let trial = post([
            "users": [["localId": "a", "providerUserInfo": google], ["localId": "b", "providerUserInfo": google]]
        ])
        #expect(trial.message == "DUPLICATE_RAW_ID : Provider id(google.com), Raw id(110)")
    }

    @Test func wrongTypesRefuseTheWholeRequest() {
        for row in [["localId": 1], ["localId": "a", "createdAt": "today"], ["localId": "a", "disabled": "no"]]
            as [JSONValue]
        {
            #expect(post(["users": [row]]).json?["error"]?["status"] == "INVALID_ARGUMENT")
        }
        #expect(post(["users": ["a"]]).status == 400)
        #expect(post(["users": [["localId": "a"]], "rounds": -1]).status == 400)
        #expect(post(["users": [["localId": "a"]], "rounds": 1.5]).status == 400)
    }

    @Test func rowsThatAreRefusedHereDoNotShiftTheOthers() {
        let trial = post(
            [
                "users": [
                    [:], ["localId": "a"], ["localId": "b", "rawPassword": "secret"],
                    ["localId": "c", "mfaInfo": [[:]]],
                    ["localId": "d", "providerUserInfo": [["providerId": "google.com"]]],
                    ["localId": "e", "tenantId": "t"],
                    ["localId": "f"],
                ]
            ],
            [
                .success([
                    "imported": 1,
                    "errors": [
                        ["index": 1, "uid": "f", "parameter": "email", "reason": "EMAIL_EXISTS", "message": "x"]
                    ],
                ])
            ])
        #expect(trial.params == ["users": [["uid": "a"], ["uid": "f"]]])
        let errors = trial.json?["error"]?.array
        #expect(errors?.map { $0["index"] } == [0, 2, 3, 4, 5, 6])
        #expect(
            errors?.map { $0["message"]?.string } == [
                "localId is missing", "rawPassword is not supported; create the account with its password instead",
                "Second factor not supported.", "federatedId or (providerId & rawId) is required",
                "Tenant id in userInfo does not match the tenant id in request.",
                "email exists in other account in database",
            ])
        #expect(!trial.text.contains("secret"))
    }

    @Test(arguments: [
        ("MISSING_LOCAL_ID", "localId is missing"), ("INVALID_LOCAL_ID", "localId is invalid"),
        ("DUPLICATE_LOCAL_ID", "localId belongs to an existing account - can not overwrite."),
        ("INVALID_EMAIL", "email is invalid"), ("EMAIL_EXISTS", "email exists in other account in database"),
        ("INVALID_PHONE_NUMBER", "phone number format is invalid"),
        ("PHONE_NUMBER_EXISTS", "phone number exists in other account in database"),
        ("FEDERATED_USER_ID_ALREADY_LINKED", "raw id exists in other account in database"),
        ("INVALID_CLAIMS", "Invalid custom claims provided."),
        ("CLAIMS_TOO_LARGE", "Custom claims provided are too large."),
        ("FORBIDDEN_CLAIM", "Custom claims provided include a reserved claim."),
        ("INVALID_PASSWORD_HASH", "of the service"), ("INVALID_TIME", "of the service"),
    ])
    func refusedRowsHaveFirebasesTexts(reason: String, message: String) {
        let trial = post(
            ["users": [["localId": "a"]]],
            [
                .success([
                    "imported": 0,
                    "errors": [["index": 0, "parameter": "x", "reason": .string(reason), "message": "of the service"]],
                ])
            ])
        #expect(
            trial.json == [
                "kind": "identitytoolkit#UploadAccountResponse", "error": [["index": 0, "message": .string(message)]],
            ])
    }

    @Test func anImportWithoutGoodRowsNeedsNoCall() {
        let trial = post(["users": [[:]]])
        #expect(trial.calls.isEmpty && trial.json?["error"] == [["index": 0, "message": "localId is missing"]])
    }

    @Test func anIndexThatWasNotSentIsSkipped() {
        let trial = post(
            ["users": [["localId": "a"]]],
            [
                .success(["imported": 0, "errors": [["index": 7, "parameter": "x", "reason": "R", "message": "m"]]])
            ])
        #expect(trial.json == ["kind": "identitytoolkit#UploadAccountResponse"])
    }

    @Test func wrongHashParametersKeepTheirCode() {
        for reason in ["MISSING_HASH_ALGORITHM", "INVALID_HASH_PARAMETERS"] {
            #expect(post(["users": [["localId": "a"]]], [.refused(.invalidArgument, reason)]).message == reason)
        }
    }

    // MARK: Large bodies

    private static var small: AccountContext {
        var context = AccountContext.test
        context.limits.bodyBytesMax = 20
        context.limits.importBytesMax = 60
        context.limits.bodyMemoryPerByteMax = 1_000
        return context
    }

    private func large(_ body: String, _ outcomes: [Result<JSONValue, RPCError>]) -> AccountTrial {
        let request = AccountRequest.administrator("POST", "/accounts:batchCreate").with { $0.body = Array(body.utf8) }
        return AccountTrial(request, Self.small, outcomes)
    }

    @Test func aLargeImportIsReadForAdministratorsOnly() {
        let body = #"{"users":[{"localId":"a"},{"localId":"b"}]}"#
        let accepted = large(
            body, [.refused(.invalidParams, "missing_parameter"), .success(["imported": 2, "errors": []])])
        #expect(accepted.calls.map(\.method) == ["auth.users.import", "auth.users.import"])
        #expect(accepted.calls.first?.params == [:] && accepted.calls.last?.params["users"]?.array?.count == 2)
        #expect(accepted.calls.map(\.identity) == [.credential(AccountTrial.key), .credential(AccountTrial.key)])
        #expect(accepted.status == 200)
        // What the body is does not matter before.
        let refused = large("[[[[[[[[[[[[[[[[[[[[[[[[", [.refused(.unauthenticated, "INVALID_ID_TOKEN")])
        #expect(refused.status == 401)
        let wrong = large("[[[[[[[[[[[[[[[[[[[[[[[[", [.refused(.invalidParams, "missing_parameter")])
        #expect(wrong.json?["error"]?["status"] == "INVALID_ARGUMENT")
        #expect(large(body, [.refused(.unavailable, "connection_lost")]).status == 503)
        let known = large(
            body, [.refused(.invalidParams, "missing_parameter"), .refused(.invalidArgument, "MISSING_HASH_ALGORITHM")])
        #expect(known.message == "MISSING_HASH_ALGORITHM")
        let tooLarge = large(String(repeating: " ", count: 61), [])
        #expect(tooLarge.message == "Request payload size exceeds the limit: 60 bytes.")
    }

    @Test func onlyImportsHaveLargeBodies() {
        func bytesMax(_ request: AccountRequest) -> Int? { AccountExchange.bodyBytesMax(of: request, Self.small) }
        let request = AccountRequest.administrator("POST", "/accounts:batchCreate")
        #expect(bytesMax(request) == 60)
        #expect(bytesMax(request.with { $0.authorization = nil }) == 20)
        #expect(bytesMax(.administrator("POST", "/accounts:lookup")) == 20)
        #expect(bytesMax(.client("signUp", [:])) == 20)
        #expect(bytesMax(AccountRequest("PUT", "/users.json")) == nil)
    }
}
