import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The conventions of Firebase's emulators at the built gateway (spec auth §8).
@Suite(.timeLimit(.minutes(10)))
struct EmulatedGateway {
    private static let owner = ["Authorization: Bearer owner"]
    private static let closed: JSONValue = ["rules": [".read": false, ".write": false]]

    private static func run(
        auth: [String] = [], _ body: @Sendable @escaping (GatewayStack, AccountsClient) throws -> Void
    ) async throws {
        var options = GatewayStack.Options(auth: auth)
        options.isEmulator = true
        try await GatewayStack.run(rules: closed, options) { stack in
            try body(stack, AccountsClient(socket: try PlainSocket(stack.gateway.address)))
        }
    }

    /// A token without signature, with the times that SDKs write.
    private static func unsigned(_ uid: String) -> String {
        let header = Base64.url.encode(#"{"alg":"none","typ":"JWT"}"#.utf8)
        let claims = #"{"sub":"\#(uid)","user_id":"\#(uid)","iat":0,"exp":3600,"auth_time":0}"#
        return "\(header).\(Base64.url.encode(claims.utf8))."
    }

    // MARK: Accounts

    /// As firebase-admin calls with the address of an emulator.
    @Test func ownerIsTheAdministrator() async throws {
        try await Self.run { stack, client in
            #expect(stack.gateway.announcement["emulator"] == true)
            #expect(stack.gateway.announcement["settingsOfAuth"] == [])
            #expect(stack.gateway.log.contains("this is an emulator"))
            let project = "/identitytoolkit.googleapis.com/v1/projects/hato"
            let made = try client.send(
                "POST \(project)/accounts",
                ["localId": "masuo", "email": "masuo@example.com", "displayName": "マスオさん"], Self.owner)
            #expect(made.status == 200 && made.json?["localId"] == "masuo")
            let found = try client.send(
                "POST \(project)/accounts:lookup", ["localId": ["masuo"]], ["Authorization: Bearer OWNER"])
            #expect(found.json?["users"]?.array?.first?["displayName"] == "マスオさん")
            #expect(try client.send("POST \(project)/accounts:lookup", ["localId": ["masuo"]]).status == 401)
            let written = try client.send("PUT /rooms/r1.json?ns=hato", ["name": "家族"], Self.owner)
            #expect(written.status == 200)
            #expect(try client.send("GET /rooms/r1/name.json?access_token=owner").body == "\"家族\"")
            #expect(try client.send("GET /rooms/r1/name.json").status == 401)
            #expect(try client.send("GET /").json == ["authEmulator": ["ready": true]])
        }
    }

    @Test func customTokensNeedNoSignature() async throws {
        try await Self.run { _, client in
            let signedIn = try client.post("signInWithCustomToken", ["token": #"{"uid":"namihei","claims":{"a":1}}"#])
            #expect(signedIn.status == 200 && signedIn.json?["isNewUser"] == true)
            let user = try client.post("lookup", ["idToken": .string(signedIn.text("idToken"))])
            #expect(user.json?["users"]?.array?.first?["localId"] == "namihei")
            // An unsigned token of the same user; its times do not count.
            let token = JSONValue.string(Self.unsigned("namihei"))
            #expect(try client.post("update", ["idToken": token, "displayName": "波平"]).text("displayName") == "波平")
            #expect(
                try client.post("lookup", ["idToken": .string(Self.unsigned("nobody"))]).message == "USER_NOT_FOUND")
        }
    }

    @Test func codesOfMailsAreListedUntilAllIsDeleted() async throws {
        try await Self.run { _, client in
            let account: JSONValue = ["email": "a@example.com", "password": "kinoko-7"]
            let idToken = JSONValue.string(try client.post("signUp", account).text("idToken"))
            #expect(try client.post("sendOobCode", ["requestType": "VERIFY_EMAIL", "idToken": idToken]).status == 200)
            let reset = try client.post("sendOobCode", ["requestType": "PASSWORD_RESET", "email": "a@example.com"])
            #expect(reset.status == 200 && reset.json?["oobLink"] == nil)
            let path = "/emulator/v1/projects/hato"
            let codes = try client.send("GET \(path)/oobCodes", nil, Self.owner).json?["oobCodes"]?.array ?? []
            #expect(codes.compactMap { $0["requestType"]?.string } == ["VERIFY_EMAIL", "PASSWORD_RESET"])
            let link = codes.first?["oobLink"]?.string ?? ""
            #expect(link.hasPrefix("http://localhost/emulator/action?mode=verifyEmail"))
            #expect(try client.send("GET \(link.replacing("http://localhost", with: ""))").status == 200)
            let verified = try client.post("lookup", ["idToken": idToken]).json?["users"]?.array?.first
            #expect(verified?["emailVerified"] == true)
            // As in Firebase's own emulator, this needs no credential: its test helpers show none.
            #expect(try client.send("DELETE \(path)/accounts").json == [:])
            #expect(try client.send("GET \(path)/oobCodes").json == ["oobCodes": []])
            #expect(try client.post("signInWithPassword", account).message == "EMAIL_NOT_FOUND")
        }
    }

    /// As Firebase checks them, where accounts are not hidden.
    @Test func aTakenAddressComesBeforeAWeakPassword() async throws {
        let account: JSONValue = ["email": "masuo@example.com", "password": "correct horse"]
        let weak: JSONValue = ["email": "masuo@example.com", "password": "short"]
        try await Self.run { _, client in
            #expect(try client.post("signUp", account).status == 200)
            #expect(try client.post("signUp", weak).message == "EMAIL_EXISTS")
            let made = try client.send("POST /v1/projects/hato/accounts", weak, Self.owner)
            #expect(made.message == "EMAIL_EXISTS")
            let hides: JSONValue = ["emailPrivacyConfig": ["enableImprovedEmailPrivacy": true]]
            #expect(try client.send("PATCH /emulator/v1/projects/hato/config", hides).status == 200)
            let hidden = try client.post("signUp", weak)
            #expect(hidden.message == "WEAK_PASSWORD : Password should be at least 6 characters")
        }
    }

    @Test func itsSettingsHoldButForFlagsOfAuth() async throws {
        let wrong: JSONValue = ["email": "a@example.com", "password": "wrong"]
        try await Self.run { _, client in
            let weak = try client.post("signUp", ["email": "a@example.com", "password": "short"])
            #expect(weak.message == "WEAK_PASSWORD : Password should be at least 6 characters")
            #expect(try client.post("signInWithPassword", wrong).message == "EMAIL_NOT_FOUND")
            let config: JSONValue = ["emailPrivacyConfig": ["enableImprovedEmailPrivacy": true]]
            let changed = try client.send("PATCH /emulator/v1/projects/hato/config", config)
            #expect(changed.json?["emailPrivacyConfig"] == config["emailPrivacyConfig"])
            #expect(try client.post("signInWithPassword", wrong).message == "INVALID_LOGIN_CREDENTIALS")
        }
        try await Self.run(auth: ["--password-length-min", "8"]) { stack, client in
            #expect(stack.gateway.announcement["settingsOfAuth"] == ["passwordLengthMin"])
            let weak = try client.post("signUp", ["email": "a@example.com", "password": "short"])
            #expect(weak.message == "WEAK_PASSWORD : Password should be at least 8 characters")
        }
    }

    // MARK: The database

    @Test func unknownNamespacesAreOpenAndUnsignedTokensAreUsers() async throws {
        try await Self.run { stack, client in
            #expect(try client.send("GET /a.json?ns=new-one").body == "null")
            #expect(try client.send("PUT /a.json?ns=new-one", 1).status == 200)
            #expect(try client.send("GET /a.json?ns=hato").status == 401)
            let rules: JSONValue = [
                "rules": ["$uid": [".read": "auth.uid === $uid", ".write": "auth.token.sub === $uid"]]
            ]
            #expect(
                try client.send("PUT /.settings/rules.json?ns=with-rules", rules, Self.owner).status == 200)
            let token = Self.unsigned("namihei")
            #expect(try client.send("PUT /namihei.json?ns=with-rules&auth=\(token)", "波平").status == 200)
            #expect(try client.send("GET /masuo.json?ns=with-rules&auth=\(token)").status == 401)
            let socket = try FirebaseSocket(stack, target: "/.ws?v=5&ns=with-rules")
            _ = try socket.message()
            func call(_ action: String, _ body: JSONValue) throws -> JSONValue? {
                let request: JSONValue = ["t": "d", "d": ["r": 1, "a": .string(action), "b": body]]
                try socket.send(EncodedJSON(request).text)
                return try socket.message()?["d"]?["b"]
            }
            #expect(try call("auth", ["cred": .string(token)])?["d"]?["auth"]?["uid"] == "namihei")
            #expect(try call("g", ["p": "/namihei", "q": [:]])?["d"] == "波平")
            #expect(try call("p", ["p": "/masuo", "d": 1])?["s"] == "permission_denied")
            #expect(try call("unauth", [:])?["s"] == "ok")
            for (action, value) in [("auth", 1), ("gauth", 2)] {
                #expect(try call(action, ["cred": "owner"])?["s"] == "ok")
                #expect(try call("p", ["p": "/masuo", "d": .number(Double(value))])?["s"] == "ok")
                #expect(try call("unauth", [:])?["s"] == "ok")
            }
            // As the helpers of tests clear a namespace.
            #expect(try client.send("DELETE /.json?ns=with-rules").status == 401)
            #expect(try client.send("DELETE /.json?ns=with-rules", nil, Self.owner).status == 200)
            #expect(try client.send("GET /.json?ns=with-rules", nil, Self.owner).body == "null")
            let first = try FirebaseSocket(stack, target: "/.ws?v=5&ns=another-one")
            _ = try first.message()
            try first.send(#"{"t":"d","d":{"r":1,"a":"p","b":{"p":"/x","d":1}}}"#)
            #expect(try first.message()?["d"]?["b"]?["s"] == "ok")
        }
    }

    // MARK: Requests that are taken

    /// Any page in a browser could be the owner, else.
    @Test func onlyNamesAndPagesOfThisMachineAreTaken() async throws {
        try await Self.run { stack, _ in
            func status(_ request: String, _ headers: [String]) throws -> Int {
                let socket = try PlainSocket(stack.gateway.address)
                let lines = (["\(request) HTTP/1.1"] + headers).joined(separator: "\r\n")
                try socket.send(Array("\(lines)\r\n\r\n".utf8))
                return try HTTPResponseText(headOf: socket).status
            }
            let socket = [
                "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Version: 13",
            ]
            for headers in [
                ["Host: evil.example.com"], ["Host: 192.168.1.5"],
                ["Host: localhost", "Origin: http://evil.example.com"],
                ["Host: localhost", "Origin: null"],
                ["Host: localhost", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
            ] {
                for request in [
                    "GET /a.json?auth=owner", "POST /v1/accounts:signUp?key=fake", "OPTIONS /v1/accounts:signUp",
                    "DELETE /emulator/v1/projects/hato/accounts", "GET /emulator/v1/projects/hato/oobCodes",
                ] {
                    let code = try status(request, headers)
                    #expect(code == 403, "\(request) \(headers)")
                }
                #expect(try status("GET /.ws?v=5", headers + socket) == 403, "\(headers)")
            }
            for headers in [["Host: localhost:9000"], ["Host: 127.0.0.1", "Origin: http://localhost:3000"]] {
                #expect(try status("GET /a.json?auth=owner", headers) == 200)
                #expect(try status("GET /.ws?v=5", headers + socket) == 101)
            }
            #expect(try status("GET /healthz", ["Host: gateway"]) == 200)
        }
    }

    @Test func itStartsBeyondThisMachineOnlyWhenThatIsConfirmed() async throws {
        let folder = try TemporaryFolder()
        let auth = try await ServingProgram(
            "hato-auth", ["--data", "\(folder.path)/auth", "--scrypt-log-n", "4"], in: folder)
        let key = "\(folder.path)/admin-key"
        let peers = ["--messages", "127.0.0.1:1", "--auth", auth.address, "--emulator", "true"]
        let without = try await Executable.run(
            "hato-gateway", ["serve", "--port", "0", "--outgoing-key-file", key] + peers)
        #expect(without.code == 78 && without.error.contains("admin-key-file"), "\(without.error)")
        let administrator = peers + ["--admin-key-file", key]
        let beyond = try await Executable.run(
            "hato-gateway",
            ["serve", "--port", "0", "--outgoing-key-file", key, "--host", "0.0.0.0"] + administrator)
        #expect(beyond.code == 78 && beyond.error.contains("emulator-beyond-loopback"), "\(beyond.error)")
        let confirmed = try await ServingProgram(
            "hato-gateway", ["--host", "0.0.0.0", "--emulator-beyond-loopback", "true"] + administrator, in: folder)
        #expect(confirmed.announcement["emulator"] == true)
        await confirmed.stop()
        await auth.stop()
    }
}
