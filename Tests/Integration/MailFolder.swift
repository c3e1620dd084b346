import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// Mails of the stack, as a test suite of an app reads them.
@Suite(.timeLimit(.minutes(5)))
struct MailFolder {
    @Test func theNewestMailToAnAddressSignsIn() async throws {
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
