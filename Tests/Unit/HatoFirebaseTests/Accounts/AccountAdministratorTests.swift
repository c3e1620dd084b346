import HatoModel
import Testing

@testable import HatoFirebase

/// Operations of administrators for many accounts, cookies, and the configuration (spec auth §4, §5).
@Suite struct AccountAdministratorTests {
    private func post(
        _ path: String, _ body: JSONValue, _ outcomes: [Result<JSONValue, RPCError>] = []
    ) -> AccountTrial {
        AccountTrial(.administrator("POST", path, body), .test, outcomes)
    }

    // MARK: Cookies

    @Test func anIDTokenBecomesACookie() {
        let trial = post(
            ":createSessionCookie", ["idToken": "t", "validDuration": "432000"], [.success(["sessionCookie": "c"])])
        #expect(trial.method == "auth.sessionCookie.create")
        #expect(trial.params == ["idToken": "t", "validForSeconds": 432_000])
        #expect(trial.calls[0].identity == .credential(AccountTrial.key))
        #expect(trial.json == ["sessionCookie": "c"])
        #expect(post(":createSessionCookie", ["idToken": "t"]).params == ["idToken": "t"])
        #expect(
            post(":createSessionCookie", ["idToken": "t", "valid_duration": 300]).params == [
                "idToken": "t", "validForSeconds": 300,
            ])
    }

    @Test func refusalsOfACookieKeepTheirCode() {
        #expect(post(":createSessionCookie", [:]).message == "MISSING_ID_TOKEN")
        for (code, reason) in [
            (RPCError.Code.unauthenticated, "INVALID_ID_TOKEN"), (.unauthenticated, "TOKEN_EXPIRED"),
            (.invalidArgument, "INVALID_DURATION"), (.notFound, "USER_NOT_FOUND"),
        ] {
            let trial = post(":createSessionCookie", ["idToken": "t", "validDuration": 1], [.refused(code, reason)])
            #expect(trial.status == 400 && trial.message == reason)
        }
        #expect(post(":createSessionCookie", ["idToken": "t", "validDuration": "9007199254740991"]).calls.count == 1)
        #expect(post(":createSessionCookie", ["idToken": "t", "validDuration": "two weeks"]).status == 400)
        let client = AccountTrial(AccountRequest("POST", "/v1/projects/p:createSessionCookie?key=k"))
        #expect(client.status == 401)
    }

    // MARK: batchGet

    @Test func anExportHasHashesAndTheNextPage() {
        let trial = AccountTrial(
            .administrator("GET", "/accounts:batchGet?maxResults=1&nextPageToken=u0"), .test,
            [
                .success([
                    "users": [
                        [
                            "uid": "u1", "email": "a@b.c", "emailVerified": true, "createdAt": 1000, "disabled": true,
                            "passwordHash": "$scrypt$ln=14,r=8,p=5$c2FsdA$aGFzaA", "passwordUpdatedAt": 1001,
                        ]
                    ], "after": "u1",
                ])
            ])
        #expect(trial.method == "auth.users.export" && trial.params == ["after": "u0", "limit": 1])
        #expect(
            trial.json == [
                "kind": "identitytoolkit#DownloadAccountResponse",
                "users": [
                    [
                        "localId": "u1", "email": "a@b.c", "emailVerified": true,
                        "passwordHash": "JHNjcnlwdCRsbj0xNCxyPTgscD01JGMyRnNkQSRhR0Z6YUE=", "salt": "YzJGc2RB",
                        "passwordUpdatedAt": 1001, "disabled": true, "createdAt": "1000",
                    ]
                ], "nextPageToken": "u1",
            ])
    }

    @Test(arguments: [
        ("", 20), ("?maxResults=5000", 1000), ("?maxResults=0", 20), ("?maxResults=-1", 20), ("?maxResults=x", 20),
        ("?maxResults=99999999999999999999", 20), ("?maxResults=1", 1), ("?maxResults=1000", 1000),
    ])
    func pagesHaveBounds(query: String, limit: Int) {
        let trial = AccountTrial(.administrator("GET", "/accounts:batchGet\(query)"), .test, [.success(["users": []])])
        #expect(trial.params == ["limit": .number(Double(limit))])
        #expect(trial.json == ["kind": "identitytoolkit#DownloadAccountResponse", "users": []])
    }

    @Test func anExportOfVersion3HasItsParametersInTheBody() {
        let body: JSONValue = ["targetProjectId": "demo", "maxResults": 2, "nextPageToken": "u"]
        let request = AccountRequest("POST", "/identitytoolkit/v3/relyingparty/downloadAccount", body: body.encoded)
            .with { $0.authorization = "Bearer \(AccountTrial.key)" }
        #expect(AccountTrial(request).params == ["after": "u", "limit": 2])
    }

    // MARK: batchDelete

    @Test func accountsAreDeletedByForce() {
        let trial = post(
            "/accounts:batchDelete", ["localIds": ["u1", "gone"], "force": true],
            [.success([:]), .refused(.notFound, "USER_NOT_FOUND")])
        #expect(trial.calls.map(\.method) == ["auth.users.delete", "auth.users.delete"])
        #expect(trial.json == [:])
    }

    @Test func withoutForceOnlyDisabledAccountsAreDeleted() {
        let trial = post(
            "/accounts:batchDelete", ["localIds": ["u1", "u2", "gone"]],
            [
                .success(Native.account("u1")), .success(Native.account("u2", ["disabled": true])), .success([:]),
                .refused(.notFound, "USER_NOT_FOUND"),
            ])
        #expect(
            trial.calls.map(\.method) == ["auth.users.get", "auth.users.get", "auth.users.delete", "auth.users.get"])
        #expect(
            trial.json == [
                "errors": [
                    [
                        "index": 0, "localId": "u1",
                        "message": "NOT_DISABLED : Disable the account before batch deletion.",
                    ]
                ]
            ])
    }

    @Test func aDeletionOfSeveralHasBounds() {
        #expect(post("/accounts:batchDelete", [:]).message == "LOCAL_ID_LIST_EXCEEDS_LIMIT")
        let many = JSONValue.array((0...1000).map { .string("u\($0)") })
        #expect(post("/accounts:batchDelete", ["localIds": many]).message == "LOCAL_ID_LIST_EXCEEDS_LIMIT")
        #expect(
            post("/accounts:batchDelete", ["localIds": ["u"], "force": true], [.refused(.unavailable, "x")]).status
                == 503)
    }

    // MARK: query

    @Test func aQueryCounts() {
        let trial = post("/accounts:query", ["returnUserInfo": false], [.success(["users": [], "total": 56])])
        #expect(trial.method == "auth.users.list" && trial.params == ["limit": 1, "total": true])
        #expect(trial.json == ["recordsCount": "56"])
    }

    @Test func aQueryGoesOnToItsOffset() {
        func page(_ range: Range<Int>, _ after: String?) -> Result<JSONValue, RPCError> {
            var page: JSONObject = ["users": .array(range.map { Native.account("u\($0)") })]
            page["after"] = .text(after)
            return .success(.object(page))
        }
        let trial = post(
            "/accounts:query", ["offset": "1001", "limit": 2], [page(0..<1000, "u999"), page(1000..<1003, "u1002")])
        #expect(trial.calls.map { JSONValue.object($0.params) } == [["limit": 1000], ["after": "u999", "limit": 3]])
        #expect(trial.json?["recordsCount"] == "2")
        #expect(trial.json?["userInfo"]?.array?.map { $0["localId"] } == ["u1001", "u1002"])
        let all = post("/accounts:query", [:], [page(0..<3, nil)])
        #expect(all.params == ["limit": 500] && all.json?["recordsCount"] == "3")
        let none = post(":queryAccounts", ["order": 1, "sort_by": "USER_ID"], [page(0..<0, nil)])
        #expect(none.json == ["recordsCount": "0", "userInfo": []])
    }

    @Test(
        arguments: [
            (["expression": [["email": "a@b.c"]]], "query by expression is not implemented"),
            (["order": "DESC"], "query in the order DESC is not implemented"),
            (["sortBy": "NAME"], "query by NAME is not implemented"),
            (["sortBy": 5], "query by USER_EMAIL is not implemented"),
            (["offset": 5_000_000], "The offset of a query should be at most 1000000."),
        ] as [(JSONValue, String)])
    func whatAQueryCannotDoIsNamed(body: JSONValue, message: String) {
        #expect(post("/accounts:query", body).message == message)
        #expect(post("/accounts:query", ["limit": -1]).status == 400)
    }

    // MARK: Configuration

    private let settings = Native.settings(["hidesWhoExists": true, "signUpAlwaysAccepts": false])

    @Test func theConfigurationIsRead() {
        let trial = AccountTrial(.administrator("GET", "/config"), .test, [.success(settings)])
        #expect(trial.method == "auth.settings.get" && trial.calls[0].identity == .credential(AccountTrial.key))
        #expect(
            trial.json == [
                "name": "projects/demo/config",
                "signIn": [
                    "allowDuplicateEmails": false, "anonymous": ["enabled": true],
                    "email": ["enabled": true, "passwordRequired": false],
                ],
                "emailPrivacyConfig": ["enableImprovedEmailPrivacy": true], "authorizedDomains": ["chat.example.com"],
            ])
        // A user's token reads what every caller may.
        #expect(AccountTrial(.administrator("GET", "/config"), .test, [.success(Native.settings())]).status == 403)
    }

    private func patch(_ query: String, _ body: JSONValue, _ outcomes: [Result<JSONValue, RPCError>] = [])
        -> AccountTrial
    {
        AccountTrial(.administrator("PATCH", "/config\(query)", body), .test, outcomes)
    }

    @Test func theConfigurationIsChanged() {
        let trial = patch(
            "?updateMask=emailPrivacyConfig.enableImprovedEmailPrivacy",
            [
                "emailPrivacyConfig": ["enableImprovedEmailPrivacy": false],
                "signIn": ["anonymous": ["enabled": false]],
            ], [.success(settings)])
        #expect(trial.method == "auth.settings.set" && trial.params == ["hidesWhoExists": false])
        let all = patch(
            "",
            [
                "email_privacy_config": ["enable_improved_email_privacy": true], "authorizedDomains": ["a.example"],
                "signIn": ["anonymous": ["enabled": false], "email": ["enabled": true, "passwordRequired": true]],
            ])
        #expect(
            all.params == [
                "anonymous": false, "passwordSignIn": true, "codeSignIn": false, "continueDomains": ["a.example"],
                "hidesWhoExists": true,
            ])
        #expect(patch("?updateMask=email_privacy_config", [:]).params == ["hidesWhoExists": false])
        #expect(patch("?updateMask=authorizedDomains", [:]).params == ["continueDomains": []])
        #expect(patch("?updateMask=mfa", ["mfa": [:]], [.success(settings)]).method == "auth.settings.get")
        // Without a mask, nothing changes that the body does not name.
        #expect(patch("", [:], [.success(settings)]).method == "auth.settings.get")
    }

    @Test func twoAccountsWithOneAddressAreRefusedByName() {
        #expect(
            patch("?updateMask=signIn", ["signIn": ["allowDuplicateEmails": true]]).message
                == "allowDuplicateEmails is not implemented")
        #expect(
            patch("?updateMask=signIn.allowDuplicateEmails", ["signIn": ["allowDuplicateEmails": false]]).method
                == "auth.settings.get")
        #expect(patch("", ["signIn": 5]).status == 400)
    }
}
