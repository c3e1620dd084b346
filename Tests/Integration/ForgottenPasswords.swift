import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Mails of the stack, as a test suite of an app reads them.
@Suite("RxSwift（とFirebase）でチャットツールを書く", .timeLimit(.minutes(5)))
struct ForgottenPasswords {
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

    @Test func theCommandsShowTheMailsOfTheFolder() async throws {
        try await TestStack.run(["--action-url", "https://chat.example.com/account"]) { stack in
            let client = stack.client(.auth)
            var request = Auth.Code.Request(type: .signIn)
            request.email = "sazae@example.com"
            for _ in 0..<2 { _ = try await client.call(request) }
            let mails = try await stack.mails(to: "sazae@example.com", count: 1)
            let mail = try #require(mails.last)
            #expect(mail.link == "https://chat.example.com/account?mode=signIn&oobCode=\(mail.code)&lang=en")
            try await eventually("the newest code signs in") {
                let newest = try #require(try await stack.mails(to: "sazae@example.com").last)
                var signIn = Auth.SignInWithCode(email: newest.to, code: newest.code)
                signIn.createAccount = true
                do { return try await client.call(signIn).isNewUser } catch let error as RPCError {
                    #expect(error.reason == "INVALID_OOB_CODE")
                    return false
                }
            }
            await client.close()
        }
    }
}
