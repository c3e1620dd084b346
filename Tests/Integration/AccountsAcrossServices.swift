import HatoModel
import HatoRPC
import HatoTesting
import TestFirebase
import Testing

/// Accounts in the other services: the tokens of an account give access to the messages of its own user, and only to
/// those.
@Suite(.timeLimit(.minutes(5)))
struct AccountsAcrossServices {
    private static let ownData = """
        {"rules": {"users": {"$uid": {".read": "auth.uid == $uid", ".write": "auth.uid == $uid"}}}}
        """

    private func path(_ session: Auth.Session) -> String { "/users/\(session.uid)/messages" }

    private func push(_ stack: TestStack, _ session: Auth.Session, _ text: String, to path: String? = nil) async throws
    {
        let client = stack.client(.messages)
        _ = try await client.call(
            method: "messages.push",
            params: ["path": .string(path ?? self.path(session)), "value": ["text": .string(text)]],
            credential: session.idToken)
        await client.close()
    }

    private func texts(_ stack: TestStack, _ session: Auth.Session, at path: String? = nil) async throws -> [String] {
        let client = stack.client(.messages)
        let answer = try await client.call(
            method: "messages.get", params: ["path": .string(path ?? self.path(session))], credential: session.idToken)
        await client.close()
        return (answer["value"]?.object?.members ?? []).compactMap { $0.value["text"]?.string }
    }

    private func setRules(_ stack: TestStack) async throws {
        let administrator = stack.client(.messages, as: .administrator)
        _ = try await administrator.call(method: "messages.rules.set", params: ["rules": .string(Self.ownData)])
        await administrator.close()
    }

    private func error<Outcome>(_ body: () async throws -> Outcome) async -> RPCError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? RPCError
        }
    }

    /// Hashing a password in a debug build takes many seconds while other tests hash, too.
    private static func patientClient(of stack: TestStack) -> RPCClient {
        var configuration = stack.configuration(.auth)
        configuration.timeout = .seconds(240)
        return RPCClient(configuration)
    }

    @Test func anonymousUserKeepsItsMessagesWhenItSignsUp() async throws {
        try await TestStack.run { stack in
            try await setRules(stack)
            let auth = Self.patientClient(of: stack)
            let anonymous = try await stack.newUser()
            try await push(stack, anonymous, "ただいま")

            var request = Auth.SignUp(email: "masuo@example.com", password: "sazae-and-friends", displayName: "マスオさん")
            request.idToken = anonymous.idToken
            let full = try #require(try await auth.call(request).session)
            #expect(full.uid == anonymous.uid)
            #expect(try await texts(stack, full) == ["ただいま"])
            try await push(stack, full, "おかえり")

            let signedIn = try await auth.call(Auth.SignIn(email: "masuo@example.com", password: "sazae-and-friends"))
            #expect(try await texts(stack, signedIn) == ["ただいま", "おかえり"])
            let refreshed = try await auth.call(Auth.Refresh(refreshToken: signedIn.refreshToken))
            #expect(try await texts(stack, refreshed).count == 2)
            await auth.close()
        }
    }

    @Test func tokenOpensNothingOfAnotherUser() async throws {
        try await TestStack.run { stack in
            try await setRules(stack)
            let masuo = try await stack.newUser()
            let sazae = try await stack.newUser()
            try await push(stack, masuo, "秘密")
            #expect(await error { try await texts(stack, sazae, at: path(masuo)) }?.code == .permissionDenied)
            #expect(await error { try await push(stack, sazae, "偽物", to: path(masuo)) }?.code == .permissionDenied)
            #expect(try await texts(stack, masuo) == ["秘密"])
        }
    }

    /// The value of `auth` in rules, for an account with all members, an anonymous one, and a caller without a
    /// credential.
    @Test func rulesSeeTheClaimsOfRealTokens() async throws {
        try await TestStack.run { stack in
            let (auth, administrator) = (Self.patientClient(of: stack), stack.client(.auth, as: .administrator))
            let signedUp = try #require(
                try await auth.call(
                    Auth.SignUp(email: "masuo@example.com", password: "sazae-and-friends", displayName: "マスオ")
                ).session)
            var change = Auth.Users.Update(uid: signedUp.uid)
            change.emailVerified = true
            change.customAttributes = #"{"staff":true,"level":3}"#
            _ = try await administrator.call(change)
            let masuo = try await auth.call(Auth.SignIn(email: "masuo@example.com", password: "sazae-and-friends"))
            let anonymous = try await stack.newUser()
            let expectations: [(rule: String, allowed: [Bool])] = [
                ("auth == null", [false, false, true]), ("auth.uid == null", [false, false, true]),
                ("auth.uid == '\(masuo.uid)'", [true, false, false]),
                ("auth != null && auth.token.sub == auth.uid", [true, true, false]),
                ("auth.token.email == null", [false, true, true]),
                ("auth.token.email == 'masuo@example.com'", [true, false, false]),
                ("auth.token.email_verified == true", [true, false, false]),
                ("auth.token.name == 'マスオ'", [true, false, false]),
                ("auth.token['staff'] == true", [true, false, false]),
                ("auth.token.level > 2", [true, false, false]),
                ("auth.token.phone_number == null", [true, true, true]),
                ("auth.provider == 'password'", [true, false, false]),
                ("auth.provider == 'anonymous'", [false, true, false]),
                ("auth.token.firebase.sign_in_provider == auth.provider && auth != null", [true, true, false]),
            ]
            var rules = JSONObject()
            for (index, row) in expectations.enumerated() { rules["t\(index)"] = [".read": .string(row.rule)] }
            let messages = stack.client(.messages, as: .administrator)
            let text = String(decoding: JSONValue.object(["rules": .object(rules)]).encoded, as: UTF8.self)
            _ = try await messages.call(method: "messages.rules.set", params: ["rules": .string(text)])
            let speakers = [
                stack.client(.messages, as: .user(idToken: masuo.idToken)),
                stack.client(.messages, as: .user(idToken: anonymous.idToken)), stack.client(.messages),
            ]
            for (index, row) in expectations.enumerated() {
                for (speaker, allowed) in zip(speakers, row.allowed) {
                    let refused = await error {
                        try await speaker.call(method: "messages.get", params: ["path": .string("/t\(index)")])
                    }
                    #expect((refused == nil) == allowed, "\(row.rule): \(refused?.message ?? "was allowed")")
                    #expect(refused == nil || refused?.code == .permissionDenied, "\(row.rule)")
                }
            }
            for client in speakers + [messages, auth, administrator] { await client.close() }
        }
    }

    @Test func forgedTokensOpenNothingAnywhere() async throws {
        try await TestStack.run { stack in
            let user = try await stack.newUser()
            let parts = user.idToken.split(separator: ".")
            // {"alg":"none"} and {"alg":"HS256"}, each with the payload of a real token.
            let forged = [
                "eyJhbGciOiJub25lIn0.\(parts[1]).", "eyJhbGciOiJIUzI1NiJ9.\(parts[1]).\(parts[2])",
                "\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 86))", "\(parts[0]).\(parts[1])", "nonsense",
            ]
            for service in TestStack.Service.allCases {
                let client = stack.client(service)
                for token in forged {
                    let refused = await error {
                        try await client.call(method: "session.authenticate", params: ["auth": .string(token)])
                    }
                    #expect(refused?.code == .unauthenticated, "\(service): \(token.prefix(30))")
                    #expect(refused?.reason == "INVALID_ID_TOKEN")
                }
                let genuine = try await client.call(
                    method: "session.authenticate", params: ["auth": .string(user.idToken)])
                #expect(genuine["uid"] == .string(user.uid))
                await client.close()
            }
        }
    }

    @Test func servicesTakeTokensOfTheNextKeyWithoutAPause() async throws {
        try await TestStack.run { stack in
            try await setRules(stack)
            let before = try await stack.newUser()
            try await push(stack, before, "前")
            let administrator = stack.client(.auth, as: .administrator)
            _ = try await administrator.call(Auth.Keys.Rotate())
            let after = try await stack.newUser()
            try await push(stack, after, "後")
            #expect(try await texts(stack, after) == ["後"])
            #expect(try await texts(stack, before) == ["前"], "tokens of the retired key stay valid")
            await administrator.close()
        }
    }

    @Test func errorOfAFormNamesEveryWrongField() async throws {
        try await TestStack.run { stack in
            let client = stack.client(.auth)
            let refused = await error {
                try await client.call(Auth.SignUp(email: "masuo", password: "abc", username: "?", displayName: ""))
            }
            #expect(refused?.code == .invalidArgument)
            let fields = (refused?.data["problems"]?.array ?? []).compactMap { $0["parameter"]?.string }
            #expect(fields == ["email", "username", "password", "displayName"])
            await client.close()
        }
    }
}
