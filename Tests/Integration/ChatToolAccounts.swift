import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The screens of a chat app in front of its chats.
@Suite("RxSwift（とFirebase）でチャットツールを書く", .timeLimit(.minutes(5)))
struct ChatToolAccounts {
    /// The four fields of the screen, and which of them it shows as wrong.
    private struct Form {
        var email = "masuo@example.com"
        var username = "masuo"
        var password = "sazae-and-friends"
        var passwordConfirm = "sazae-and-friends"

        /// The session of the new account, or the wrong fields. The second password never leaves the screen.
        func submit(_ client: RPCClient) async throws -> (session: Auth.Session?, wrong: [String]) {
            var request = Auth.SignUp(email: email, password: password, username: username, displayName: "マスオさん")
            request.dryRun = true
            var wrong: [String] = []
            do { _ = try await client.call(request) } catch let error as RPCError {
                wrong = try #require(error.data["problems"]?.array).compactMap { $0["parameter"]?.string }
            }
            if password != passwordConfirm { wrong.append("passwordConfirm") }
            guard wrong.isEmpty else { return (nil, wrong) }
            request.dryRun = nil
            return (try await client.call(request).session, [])
        }

        func with(_ change: (inout Form) -> Void) -> Form {
            var form = self
            change(&form)
            return form
        }
    }

    private func reason(_ body: () async throws -> some Any) async -> String? {
        do {
            _ = try await body()
            return nil
        } catch { return (error as? RPCError)?.reason ?? "\(error)" }
    }

    private func users(_ stack: TestStack) async throws -> [Auth.Account] {
        let client = stack.client(.auth, as: .administrator)
        let users = try await client.call(Auth.Users.List()).users
        await client.close()
        return users
    }

    @Test func theFormOfFourFieldsMakesAnAccount() async throws {
        try await TestStack.run(["--rules", "chat"]) { stack in
            let auth = stack.client(.auth)
            let form = Form()
            for (wrong, fields) in [
                (form.with { $0.email = "masuo" }, ["email"]), (form.with { $0.username = "マスオ" }, ["username"]),
                (form.with { ($0.password, $0.passwordConfirm) = ("abc", "abc") }, ["password"]),
                (form.with { $0.passwordConfirm = "sazae-and-friend" }, ["passwordConfirm"]),
                (
                    Form(email: "masuo@", username: "?", password: "", passwordConfirm: "x"),
                    ["email", "username", "password", "passwordConfirm"]
                ),
            ] {
                let outcome = try await wrong.submit(auth)
                #expect(outcome.session == nil && outcome.wrong == fields)
            }
            #expect(try await users(stack).isEmpty)

            let masuo = try #require(try await form.submit(auth).session)
            let account = try await auth.call(Auth.Account.Get(), credential: masuo.idToken)
            #expect(account.displayName == "マスオさん" && account.username == "masuo")
            #expect(account.email == "masuo@example.com" && account.uid == masuo.uid)
            let other = try await form.with { ($0.email, $0.username) = ("norisuke@example.com", "Masuo") }.submit(auth)
            #expect(other.session == nil && other.wrong == ["username"], "it is taken")
            // What the article misses: the data of other users.
            let sazae = stack.client(.messages, as: .user(idToken: try await stack.newUser().idToken))
            try await eventually("others read the name") {
                let path = try TreePath("/users/\(masuo.uid)/name")
                return try await sazae.call(Messages.Get(path: path)).value == "マスオさん"
            }
            for client in [auth, sazae] { await client.close() }
        }
    }

    @Test func theSignInScreenMakesNoAccount() async throws {
        try await TestStack.run { stack in
            let (auth, administrator) = (stack.client(.auth), stack.client(.auth, as: .administrator))
            #expect(try await auth.call(Auth.Settings.Get()).signUp == .open)
            let issuer = GivenKeysIssuer()
            var provider = issuer.provider("oidc.work")
            _ = try await administrator.call(provider)
            let (form, address) = (Form(), Form().email)

            let password = await reason { try await auth.call(Auth.SignIn(email: address, password: form.password)) }
            #expect(password == "INVALID_LOGIN_CREDENTIALS")
            var request = Auth.Code.Request(type: .signIn)
            request.email = address
            _ = try await auth.call(request)
            let mail = try #require(try await stack.mails(to: address).first)
            var signInWithCode = Auth.SignInWithCode(email: address, code: try #require(mail.digits))
            #expect(await reason { try await auth.call(signInWithCode) } == "EMAIL_NOT_FOUND")
            let signInWithProvider = Auth.SignInWithProvider(
                provider: "oidc.work", idToken: try issuer.token("norisuke", email: "norisuke@example.com"))
            #expect(await reason { try await auth.call(signInWithProvider) } == "ADMIN_ONLY_OPERATION")
            #expect(try await users(stack).isEmpty)

            let masuo = try #require(try await form.submit(auth).session)
            #expect(try await users(stack).map(\.uid) == [masuo.uid])
            let signedIn = try await auth.call(Auth.SignIn(email: address, password: form.password))
            #expect(signedIn.uid == masuo.uid && !signedIn.isNewUser)
            // The refused code and token were good: they sign in where they may make an account.
            signInWithCode.createAccount = true
            #expect(try await auth.call(signInWithCode).uid == masuo.uid)
            provider.allowsSignUp = true
            _ = try await administrator.call(provider)
            #expect(try await auth.call(signInWithProvider).session.isNewUser)
            #expect(try await users(stack).count == 2)
            for client in [auth, administrator] { await client.close() }
        }
    }

    @Test func aForgottenPasswordIsSetByTheDigitsOfTheMail() async throws {
        try await TestStack.run { stack in
            let user = try await stack.newUser(email: "masuo@example.com")
            let client = stack.client(.auth)
            var request = Auth.Code.Request(type: .passwordReset)
            request.email = "masuo@example.com"
            request.locale = "ja"
            _ = try await client.call(request)
            let mail = try #require(try await stack.mails(to: "masuo@example.com").first)
            #expect(mail.subject == "パスワードの再設定")
            var apply = Auth.Code.Apply(code: try #require(mail.digits), email: mail.to)
            apply.newPassword = "sazae-and-friends"
            _ = try await client.call(apply)
            let session = try await client.call(Auth.SignIn(email: mail.to, password: "sazae-and-friends"))
            #expect(session.uid == user.uid)
            await client.close()
        }
    }
}
