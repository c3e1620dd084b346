import HatoModel
import HatoTesting
import Testing

/// Firebase Auth over HTTP at the built gateway (spec auth §1-§6).
@Suite(.timeLimit(.minutes(10)))
struct GatewayAccounts {
    private static let password = "correct horse battery"
    private static let masuo: JSONValue = [
        "email": "masuo@example.com", "password": .string(password), "displayName": "マスオさん",
        "returnSecureToken": true,
    ]

    // MARK: Users

    @Test func aPersonSignsUpWithANameAndComesBack() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let signedUp = try client.post("signUp", Self.masuo)
            #expect(signedUp.status == 200 && signedUp.text("displayName") == "マスオさん")
            #expect(signedUp.text("kind") == "identitytoolkit#SignupNewUserResponse")
            #expect(signedUp.text("expiresIn") == "3600" && signedUp.text("localId").utf8.count == 28)
            let signedIn = try client.send(
                "POST /www.googleapis.com/identitytoolkit/v3/relyingparty/verifyPassword?key=fake",
                ["email": "Masuo@example.com", "password": .string(Self.password)])
            #expect(signedIn.json?["registered"] == true && signedIn.text("localId") == signedUp.text("localId"))
            let token = signedIn.text("idToken")
            let user = try client.post("lookup", ["idToken": .string(token)]).json?["users"]?.array?.first
            #expect(user?["displayName"] == "マスオさん" && user?["email"] == "masuo@example.com")
            #expect(user?["providerUserInfo"]?.array?.first?["providerId"] == "password")
            #expect(user?["passwordHash"] == "UkVEQUNURUQ=" && user?["salt"] == nil)
            let renamed = try client.post(
                "update", ["idToken": .string(token), "displayName": "マスオ", "photoUrl": "https://example.com/m.png"])
            #expect(renamed.text("displayName") == "マスオ" && renamed.json?["idToken"] == nil)
            let changed = try client.post(
                "update", ["id_token": .string(token), "password": "an even better password"])
            #expect(changed.status == 200 && !changed.text("refreshToken").isEmpty)
            let deleted = try client.post("delete", ["idToken": .string(changed.text("idToken"))])
            #expect(deleted.json == ["kind": "identitytoolkit#DeleteAccountResponse"])
            let gone = try client.post("lookup", ["idToken": .string(changed.text("idToken"))])
            #expect(gone.status == 400 && gone.message == "USER_NOT_FOUND")
        }
    }

    @Test func anAnonymousUserKeepsTheUidBehindAnAddress() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let anonymous = try client.post("signUp", [:])
            #expect(anonymous.status == 200 && anonymous.json?["email"] == nil)
            var linking: JSONValue { ["idToken": .string(anonymous.text("idToken")), "email": "a@example.com"] }
            #expect(try client.post("signUp", linking).message == "MISSING_PASSWORD")
            let linked = try client.post(
                "signUp",
                [
                    "idToken": .string(anonymous.text("idToken")), "email": "a@example.com",
                    "password": .string(Self.password),
                ])
            #expect(linked.status == 200 && linked.text("localId") == anonymous.text("localId"))
        }
    }

    @Test func refreshTokensComeAsFormsAndAsJSON() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let session = try client.post("signUp", [:])
            let refreshToken = session.text("refreshToken")
            let form = try HTTPResponseText.of(
                "POST /securetoken.googleapis.com/v1/token?key=fake",
                ["Content-Type: application/x-www-form-urlencoded"],
                body: "grant_type=refresh_token&refresh_token=\(refreshToken)", on: client.socket)
            #expect(form.status == 200 && form.text("user_id") == session.text("localId"))
            #expect(form.text("access_token") == form.text("id_token") && form.text("token_type") == "Bearer")
            #expect(form.text("expires_in") == "3600" && form.text("project_id") == "12345")
            let json = try client.send(
                "POST /v1/token?key=fake",
                ["grantType": "refresh_token", "refreshToken": .string(form.text("refresh_token"))])
            #expect(json.status == 200 && json.text("user_id") == session.text("localId"))
            for (body, message) in [
                ([:], "MISSING_GRANT_TYPE"), (["grant_type": "password"], "INVALID_GRANT_TYPE"),
                (["grant_type": "refresh_token"], "MISSING_REFRESH_TOKEN"),
                (["grant_type": "refresh_token", "refresh_token": "nonsense"], "INVALID_REFRESH_TOKEN"),
            ] as [(JSONValue, String)] {
                let refused = try client.send("POST /v1/token?key=fake", body)
                #expect(refused.status == 400 && refused.message == message)
            }
        }
    }

    /// In the order of Firebase's checks: what comes first is what is said.
    @Test func eachMistakeHasItsCode() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            #expect(try client.post("signUp", Self.masuo).status == 200)
            let idToken = JSONValue.string(try client.post("signUp", [:]).text("idToken"))
            let wrong: [(operation: String, body: JSONValue, message: String)] = [
                ("signUp", ["localId": "u", "password": "x"], "UNEXPECTED_PARAMETER : User ID"),
                ("signUp", ["password": "x"], "MISSING_EMAIL"), ("signUp", ["email": "x"], "MISSING_PASSWORD"),
                ("signUp", ["email": ""], "INVALID_EMAIL"),
                ("signUp", ["email": "x", "password": "short"], "INVALID_EMAIL"),
                ("signUp", ["email": "masuo@example.com", "password": .string(Self.password)], "EMAIL_EXISTS"),
                (
                    "signUp", ["email": "b@example.com", "password": "short"],
                    "WEAK_PASSWORD : Password should be at least 15 characters"
                ),
                ("signInWithPassword", ["password": "x"], "MISSING_EMAIL"),
                ("signInWithPassword", ["email": "x", "password": "x"], "INVALID_EMAIL"),
                ("signInWithPassword", ["email": "a@b.c"], "MISSING_PASSWORD"),
                ("signInWithPassword", ["email": "a@b.c", "password": "x"], "INVALID_LOGIN_CREDENTIALS"),
                ("signInWithPassword", ["email": "masuo@example.com", "password": "x"], "INVALID_LOGIN_CREDENTIALS"),
                ("signInWithCustomToken", [:], "MISSING_CUSTOM_TOKEN"),
                ("signInWithEmailLink", ["oobCode": "c"], "MISSING_EMAIL"),
                ("signInWithEmailLink", ["email": "a@b.c"], "MISSING_OOB_CODE"),
                ("signInWithEmailLink", ["email": "a@b.c", "oobCode": "c"], "INVALID_OOB_CODE"),
                ("lookup", [:], "MISSING_ID_TOKEN"), ("lookup", ["idToken": "x"], "INVALID_ID_TOKEN"),
                ("update", ["displayName": "x"], "INVALID_REQ_TYPE : Unsupported request parameters."),
                ("update", ["idToken": idToken, "customAttributes": "{}"], "INSUFFICIENT_PERMISSION"),
                ("update", ["idToken": idToken, "disableUser": true], "OPERATION_NOT_ALLOWED"),
                ("update", ["idToken": idToken, "email": "x"], "INVALID_EMAIL"),
                ("update", ["oobCode": "nonsense"], "INVALID_OOB_CODE"), ("delete", [:], "MISSING_ID_TOKEN"),
                ("sendOobCode", ["email": "a@b.c"], "MISSING_REQ_TYPE"),
                (
                    "sendOobCode", ["requestType": "PASSWORD_RESET", "returnOobLink": true], "INSUFFICIENT_PERMISSION"
                ),
                ("sendOobCode", ["requestType": "PASSWORD_RESET"], "MISSING_EMAIL"),
                ("resetPassword", [:], "MISSING_OOB_CODE"),
                ("resetPassword", ["oobCode": "nonsense"], "INVALID_OOB_CODE"),
                ("createAuthUri", [:], "MISSING_IDENTIFIER"),
                ("createAuthUri", ["identifier": "a@b.c"], "MISSING_CONTINUE_URI"),
            ]
            for (operation, body, message) in wrong {
                let response = try client.post(operation, body)
                #expect(response.message == message, "\(operation) \(body)")
                #expect(response.status == 400 && response.json?["error"]?["status"] == nil, "\(operation) \(body)")
            }
            let unreadable = try client.post("signUp", ["email": 5])
            #expect(unreadable.json?["error"]?["status"] == "INVALID_ARGUMENT")
            #expect(try client.post("signInWithPhoneNumber", [:]).status == 501)
            #expect(try client.post("nothing", [:]).status == 404)
            #expect(try client.send("GET /__/auth/handler").status == 501)
            let uri = try client.post("createAuthUri", ["identifier": "a@b.c", "continueUri": "http://localhost"])
            #expect(uri.status == 200 && uri.text("sessionId").utf8.count == 27)
        }
    }

    // MARK: The old widget

    @Test func theWidgetSignsUpReadsTheNewestAndPosts() async throws {
        let rules: JSONValue = [
            "rules": ["messages": [".read": "auth != null", ".write": "auth != null", ".indexOn": "date"]]
        ]
        try await GatewayStack.run(rules: rules) { stack in
            let client = AccountsClient(socket: try PlainSocket(stack.gateway.address))
            let user = try client.send("POST /identitytoolkit/v3/relyingparty/signupNewUser?key=fake", [:])
            let token = user.text("idToken")
            let newest = "/messages.json?orderBy=%22date%22&limitToLast=1&auth=\(token)"
            #expect(try client.send("GET \(newest)").body == "{}")
            for (date, text) in [(1, "ただいま"), (2, "おかえり")] {
                let message: JSONValue = [
                    "date": .number(Double(date)), "text": .string(text), "name": "マスオさん",
                ]
                #expect(try client.send("POST /messages.json?auth=\(token)", message).status == 200)
            }
            let last = try client.send("GET \(newest)").json?.object?.members.first?.value
            #expect(last?["text"] == "おかえり" && last?["name"] == "マスオさん")
            #expect(try client.send("GET /messages.json").status == 401)
        }
    }

    // MARK: Outages

    /// SDKs take what is no JSON for a network error, and keep their user.
    @Test func anOutageOfAuthIsATextAndEndsByItself() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let session = try client.post("signUp", [:])
            let lookup: JSONValue = ["idToken": .string(session.text("idToken"))]
            await stack.auth.stop()
            let origin = ["Origin: https://chat.example.com"]
            for away in [
                try client.post("lookup", lookup, origin),
                try client.send(
                    "POST /v1/token?key=fake",
                    ["grant_type": "refresh_token", "refresh_token": .string(session.text("refreshToken"))], origin),
                try client.post("signUp", [:], origin),
            ] {
                #expect(away.status == 503 && away.json == nil && !away.body.isEmpty)
                #expect(away.headers["content-type"] == "text/plain; charset=utf-8")
                #expect(away.headers["retry-after"].flatMap { Int($0) } ?? 0 > 0)
                #expect(away.headers["access-control-allow-origin"] == "https://chat.example.com")
            }
            // One warning with the reason, and later a line that it is back.
            func lines(_ text: String) -> Int { stack.gateway.log.split(separator: "\n").count { $0.contains(text) } }
            #expect(lines("a service takes no calls") == 1 && lines("a service takes calls again") == 0)
            #expect(stack.gateway.log.contains("service=auth") && stack.gateway.log.contains("connection refused"))
            // What needs no call goes on.
            #expect(try client.post("lookup", [:]).message == "MISSING_ID_TOKEN")
            let again = try await stack.startAuthAgain()
            #expect(try client.post("lookup", lookup).status == 200)
            #expect(lines("a service takes calls again") == 1)
            await again.stop()
        }
    }

    /// A service that takes connections and never responds.
    @Test func aSilentServiceIsAnOutageInTime() async throws {
        let silent = try SilentService()
        let folder = try TemporaryFolder()
        let gateway = try await ServingProgram(
            "hato-gateway",
            [
                "--messages", "127.0.0.1:1", "--auth", silent.address, "--auth-call-ms-max", "200", "--metrics-port",
                "0",
            ], in: folder)
        let client = AccountsClient(socket: try PlainSocket(gateway.address))
        let response = try client.post("lookup", ["idToken": "t"])
        #expect(response.status == 503 && response.headers["content-type"] == "text/plain; charset=utf-8")
        // What changes something may have been done.
        let signUp = try client.post("signUp", [:])
        #expect(signUp.status == 504 && signUp.headers["content-type"] == "text/plain; charset=utf-8")
        #expect(signUp.json == nil && signUp.headers["retry-after"] == nil)
        #expect(signUp.headers["access-control-allow-origin"] == "*")
        // A connection is closed with its last call that was given up: the next call tries another one.
        let metrics = "127.0.0.1:\(gateway.announcement["metricsPort"]?.integer ?? 0)"
        try await eventually("no connection to the service is left") {
            try HTTPResponseText.of("GET /metrics", on: PlainSocket(metrics)).body.contains("\nhato_gateway_wires 0\n")
        }
        await gateway.stop()
    }

    @Test func aLimitRefusesLookupAndTokenAsAnOutage() async throws {
        let limits = [
            "--sign-ins-per-address-burst", "2", "--sign-ins-per-address-minute", "1",
            "--refreshes-per-address-burst", "1", "--refreshes-per-address-minute", "1",
        ]
        try await AccountsStack.run(auth: limits) { stack in
            let client = try stack.client()
            let session = try client.post("signUp", [:])
            func refresh(_ token: String) throws -> HTTPResponseText {
                try client.send(
                    "POST /v1/token?key=fake", ["grant_type": "refresh_token", "refresh_token": .string(token)])
            }
            let first = try refresh(session.text("refreshToken"))
            #expect(first.status == 200)
            let second = try refresh(first.text("refresh_token"))
            #expect(second.status == 503 && second.headers["content-type"] == "text/plain; charset=utf-8")
            #expect(second.headers["retry-after"].flatMap { Int($0) } ?? 0 > 0)
            let wrong: JSONValue = ["email": "a@b.c", "password": "wrong wrong wrong"]
            for _ in 0..<2 { #expect(try client.post("signInWithPassword", wrong).status == 400) }
            let limited = try client.post("signInWithPassword", wrong)
            #expect(limited.message?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER : ") == true && limited.status == 400)
            #expect(limited.headers["retry-after"] != nil)
        }
    }
}
