import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Accounts over HTTP as servers and browsers manage them at the built gateway (spec auth §1, §4-§7).
@Suite(.timeLimit(.minutes(10)))
struct ManagedAccounts {
    private static let password = "correct horse battery"

    @Test func administratorsManageAccounts() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let made = try client.manage(
                "POST /accounts",
                [
                    "localId": "masuo", "email": "masuo@example.com", "password": .string(Self.password),
                    "displayName": "マスオさん",
                ])
            #expect(made.json?["localId"] == "masuo" && made.json?["idToken"] == nil)
            #expect(try client.manage("POST /accounts", ["localId": "masuo"]).message == "DUPLICATE_LOCAL_ID")
            let found = try client.manage(
                "POST /accounts:lookup", ["localId": ["masuo", "nobody"], "email": ["masuo@example.com"]])
            #expect(found.json?["users"]?.array?.count == 1)
            #expect(found.json?["users"]?.array?.first?["lastLoginAt"] == nil)
            #expect(try client.manage("POST /accounts:lookup", ["localId": ["nobody"]]).json?["users"] == nil)
            let session = try client.post(
                "signInWithPassword", ["email": "masuo@example.com", "password": .string(Self.password)])
            let cookie = try client.manage(
                "POST :createSessionCookie",
                ["idToken": .string(session.text("idToken")), "validDuration": "3600"])
            #expect(cookie.text("sessionCookie").split(separator: ".").count == 3)
            let claims = try client.manage(
                "POST /accounts:update", ["localId": "masuo", "customAttributes": #"{"role":"editor"}"#])
            #expect(claims.status == 200)
            #expect(
                try client.manage("POST /accounts:update", ["localId": "masuo", "customAttributes": #"{"sub":1}"#])
                    .message == "FORBIDDEN_CLAIM : sub")
            let revoked = try client.manage("POST /accounts:update", ["localId": "masuo", "validSince": "1795000000"])
            #expect(revoked.status == 200)
            let refresh = try client.send(
                "POST /v1/token?key=fake",
                ["grant_type": "refresh_token", "refresh_token": .string(session.text("refreshToken"))])
            #expect(refresh.message == "TOKEN_EXPIRED" || refresh.message == "INVALID_REFRESH_TOKEN")
            let page = try client.manage("GET /accounts:batchGet?maxResults=20")
            #expect(page.json?["users"]?.array?.first?["passwordHash"]?.string?.isEmpty == false)
            let count = try client.manage("POST /accounts:query", ["returnUserInfo": false])
            #expect(count.json == ["recordsCount": "1"])
            let kept = try client.manage("POST /accounts:batchDelete", ["localIds": ["masuo", "nobody"]])
            #expect(kept.json?["errors"]?.array?.count == 1)
            let deleted = try client.manage(
                "POST /accounts:batchDelete", ["localIds": ["masuo", "nobody"], "force": true])
            #expect(deleted.json == [:])
            #expect(try client.manage("POST /accounts:delete", ["localId": "masuo"]).message == "USER_NOT_FOUND")
        }
    }

    @Test func aPasswordMayComeBeforeTheAddress() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let made = try client.manage("POST /accounts", ["localId": "masuo", "password": .string(Self.password)])
            #expect(made.status == 200 && made.json?["localId"] == "masuo")
            let found = try client.manage("POST /accounts:lookup", ["localId": ["masuo"]])
            let user = found.json?["users"]?.array?.first
            #expect(user?["passwordHash"] == "UkVEQUNURUQ=" && user?["providerUserInfo"]?.array?.isEmpty != false)
            let signIn: JSONValue = ["email": "masuo@example.com", "password": .string(Self.password)]
            #expect(try client.post("signInWithPassword", signIn).message == "INVALID_LOGIN_CREDENTIALS")
            let named = try client.manage(
                "POST /accounts:update", ["localId": "masuo", "email": "masuo@example.com"])
            #expect(named.status == 200)
            #expect(try client.post("signInWithPassword", signIn).json?["localId"] == "masuo")
        }
    }

    @Test func onlyAdministratorsManageAccounts() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let idToken = try client.post("signUp", [:]).text("idToken")
            let path = "POST /v1/projects/hato/accounts:lookup"
            #expect(try client.send(path, ["localId": ["x"]]).status == 401)
            for wrong in ["owner", "wrong", String(repeating: "x", count: 100)] {
                let refused = try client.send(path, ["localId": ["x"]], ["Authorization: Bearer \(wrong)"])
                #expect(refused.status == 401 && refused.json?["error"]?["status"] == "UNAUTHENTICATED", "\(wrong)")
            }
            let user = try client.send(path, ["localId": ["x"]], ["Authorization: Bearer \(idToken)"])
            #expect(user.status == 403)
        }
    }

    /// Rows of more than a client may send, and the answer to those without a key.
    @Test func largeImportsAreForAdministrators() async throws {
        try await AccountsStack.run { stack in
            let users = (0..<1_000).map { number -> JSONValue in
                [
                    "localId": .string("user-\(number)"), "email": .string("user-\(number)@example.com"),
                    "displayName": .string(String(repeating: "名", count: 80)),
                ]
            }
            let body: JSONValue = ["users": .array(users)]
            #expect(EncodedJSON(body).bytes.count > 256 << 10)
            let imported = try stack.client().manage("POST /accounts:batchCreate", body)
            #expect(imported.status == 200 && imported.json?["error"] == nil)
            let path = "POST /v1/projects/hato/accounts:batchCreate"
            let wrong = try stack.client().send(path, body, ["Authorization: Bearer wrong"])
            #expect(wrong.status == 401)
            let client = try stack.client()
            let none = try client.send(path, body)
            #expect(none.status == 401 && none.headers["connection"] == "close")
            let long = try stack.client().post("signUp", body)
            #expect(long.status == 400 && long.message?.hasPrefix("Request payload size exceeds") == true)
            let count = try stack.client().manage("POST /accounts:query", ["returnUserInfo": false])
            #expect(count.json == ["recordsCount": "1000"])
        }
    }

    // MARK: Pages and documents

    @Test func aLinkShowsAPageAndItsFormActs() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let account: JSONValue = ["email": "masuo@example.com", "password": .string(Self.password)]
            #expect(try client.manage("POST /accounts", account).status == 200)
            let request: JSONValue = [
                "requestType": "PASSWORD_RESET", "email": "masuo@example.com", "returnOobLink": true,
            ]
            let issued = try client.manage("POST /accounts:sendOobCode", request)
            let link = issued.text("oobLink")
            #expect(link.hasPrefix("http://localhost/__/auth/action?mode=resetPassword"))
            let target = link.replacing("http://localhost", with: "")
            for _ in 0..<2 {
                let page = try client.send("GET \(target)")
                #expect(page.status == 200 && page.headers["content-type"] == "text/html; charset=utf-8")
                #expect(page.headers["content-security-policy"] != nil && page.body.contains("<form"))
            }
            func form(_ password: String) throws -> HTTPResponseText {
                let text = "mode=resetPassword&oobCode=\(issued.text("oobCode"))&newPassword=\(password)"
                return try HTTPResponseText.of(
                    "POST /__/auth/action", ["Content-Type: application/x-www-form-urlencoded"], body: text,
                    on: client.socket)
            }
            #expect(try form("short").status == 400)
            #expect(try form("a+much+better+password").status == 200)
            #expect(try form("a+much+better+password").status == 400)
            let signedIn = try client.post(
                "signInWithPassword", ["email": "masuo@example.com", "password": "a much better password"])
            #expect(signedIn.status == 200)
        }
    }

    @Test func publicDocumentsMayBeKept() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let keys = try client.send("GET /.well-known/jwks.json")
            #expect(keys.headers["cache-control"] == "public, max-age=300")
            #expect(keys.json?["keys"]?.array?.first?["crv"] == "P-256")
            let head = try client.send("HEAD /.well-known/jwks.json")
            #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] != "0")
            let configuration = try client.send("GET /.well-known/openid-configuration")
            #expect(configuration.text("jwks_uri") == "http://localhost/.well-known/jwks.json")
            #expect(configuration.text("issuer") == "https://securetoken.google.com/hato")
            #expect(
                try client.send("GET /robot/v1/metadata/x509/securetoken@system.gserviceaccount.com").status == 404)
            let policy = try client.send("GET /v2/passwordPolicy?key=fake")
            #expect(policy.json?["customStrengthOptions"]?["minPasswordLength"] == 15)
            #expect(try client.send("GET /v2/recaptchaConfig?key=fake").json?["recaptchaEnforcementState"] == [])
            #expect(try client.send("GET /v1/projects?key=fake").json?["authorizedDomains"] == [])
            // Those of emulators are none here, and nodes are the database's.
            #expect(try client.send("DELETE /emulator/v1/projects/hato/accounts").status == 404)
            #expect(try client.send("GET /").status == 404)
        }
    }

    /// Others fetch keys from these addresses: http would be plain, or nothing behind a proxy.
    @Test func addressesHaveTheSchemeOfTheProxy() async throws {
        func keys(_ arguments: [String], _ headers: [String]) async throws -> String {
            var found = ""
            try await AccountsStack.run(arguments) { stack in
                let configuration = try stack.client().send(
                    "GET /.well-known/openid-configuration", nil, headers)
                found = configuration.text("jwks_uri")
            }
            return found
        }
        let (proxies, path) = (["--trusted-proxies", "127.0.0.1"], "/.well-known/jwks.json")
        let forwarded = ["X-Forwarded-Proto: https"]
        #expect(try await keys(proxies, ["X-Forwarded-Proto: http, https"]) == "https://localhost\(path)")
        #expect(try await keys([], forwarded) == "http://localhost\(path)")
        let own = ["--public-url", "https://Chat.example.com/"]
        #expect(try await keys(own, ["X-Forwarded-Proto: http"]) == "https://chat.example.com\(path)")
        // The gateway's own page may call it where a proxy has replaced the host.
        let withOrigins = own + ["--origins", "https://other.example"]
        #expect(try await keys(withOrigins, ["Origin: https://chat.example.com"]) == "https://chat.example.com\(path)")
    }

    @Test func pagesOfOtherOriginsMayCall() async throws {
        try await AccountsStack.run { stack in
            let client = try stack.client()
            let asked = try client.send(
                "OPTIONS /identitytoolkit.googleapis.com/v1/accounts:lookup?key=fake", nil,
                [
                    "Origin: https://chat.example.com", "Access-Control-Request-Method: POST",
                    "Access-Control-Request-Headers: content-type,x-client-version,x-firebase-gmpid",
                    "Access-Control-Request-Private-Network: true",
                ])
            #expect(asked.status == 204)
            #expect(asked.headers["access-control-allow-origin"] == "https://chat.example.com")
            #expect(
                asked.headers["access-control-allow-headers"] == "content-type,x-client-version,x-firebase-gmpid")
            #expect(asked.headers["access-control-allow-private-network"] == "true")
            let response = try client.post("lookup", [:], ["Origin: https://chat.example.com"])
            #expect(response.headers["access-control-allow-origin"] == "https://chat.example.com")
        }
    }

    @Test func apiKeysMayBeListed() async throws {
        try await AccountsStack.run(["--api-keys", "one,two"]) { stack in
            let client = try stack.client()
            #expect(try client.send("POST /v1/accounts:signUp", [:]).status == 403)
            let wrong = try client.send("POST /v1/accounts:signUp?key=fake", [:])
            #expect(wrong.status == 400 && wrong.message?.hasPrefix("API key not valid.") == true)
            #expect(try client.send("POST /v1/accounts:signUp?key=two", [:]).status == 200)
            #expect(try client.send("POST /v1/accounts:signUp", [:], ["X-Goog-Api-Key: one"]).status == 200)
            #expect(try client.manage("POST /accounts", [:]).status == 200)
        }
    }

    // MARK: Bounds

    @Test func connectionsToAuthAreFew() async throws {
        try await AccountsStack.run(["--auth-wires-max", "4", "--event-loops", "2"]) { stack in
            let clients = try (0..<24).map { _ in try stack.client() }
            let wrong = EncodedJSON(["email": "a@b.c", "password": "wrong wrong wrong"]).text
            let head = [
                "POST /v1/accounts:signInWithPassword?key=fake HTTP/1.1", "Host: localhost",
                "Content-Length: \(wrong.utf8.count)",
            ].joined(separator: "\r\n")
            for client in clients { try client.socket.send(Array("\(head)\r\n\r\n\(wrong)".utf8)) }
            for client in clients { #expect(try HTTPResponseText(headOf: client.socket).status == 400) }
            let administrator = try PlainSocket(stack.auth.address)
            try administrator.send("service.metrics", ["auth": .string(ServingProgram.administratorKey)])
            let text = try JSONParser.parse(administrator.line())["result"]?["text"]?.string ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix("hato_rpc_connections{") }
            let count = line?.split(separator: " ").last.flatMap { Double($0) } ?? 0
            // This client is one, too.
            #expect((2...5).contains(count), "\(line ?? "")")
        }
    }

    @Test func theAddressOfTheClientCountsInLimits() async throws {
        try await AccountsStack.run(auth: ["--anonymous-per-address-burst", "2", "--anonymous-per-address-minute", "1"])
        { stack in
            let client = try stack.client()
            for _ in 0..<2 { #expect(try client.post("signUp", [:]).status == 200) }
            #expect(try client.post("signUp", [:]).message?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") == true)
        }
    }
}
