import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Invitations: codes without digits.
@Suite(.timeLimit(.minutes(10)))
struct InviteTests {
    private static let masuo = "masuo@example.com"
    private static let password = "isono-and-namihei"

    private func invite(
        _ bench: AuthBench, _ change: (inout Auth.Users.Invite) -> Void = { _ in }
    ) async throws -> Auth.Users.Invite.Result {
        var request = Auth.Users.Invite(email: Self.masuo)
        change(&request)
        return try await InviteMethod(service: bench.service).invite(request)
    }

    @Test func anInvitedUserSetsThePassword() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails) { $0.signUp = .invited }
        let invited = try await invite(bench) {
            $0.uid = "masuo"
            $0.displayName = "マスオさん"
            $0.locale = "ja"
        }
        #expect(invited == Auth.Users.Invite.Result(uid: "masuo", email: Self.masuo))
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.type == .invite && mail.digits == nil && mail.text.contains("\n\(mail.code)\n"))
        bench.pass(seconds: 6 * 86_400)
        _ = try await bench.apply(mail.code, newPassword: Self.password)
        let session = try await bench.signIn(Self.masuo, Self.password)
        let account = try await bench.account(session)
        #expect(account.uid == "masuo" && account.emailVerified && account.displayName == "マスオさん")
        #expect(await wireError { try await invite(bench) }?.reason == "EMAIL_EXISTS", "it has a password")
    }

    @Test func aSecondInvitationEndsTheFirst() async throws {
        let bench = try await AuthBench.open()
        let first = try await invite(bench) { $0.returnCode = true }
        let second = try await invite(bench) { $0.returnCode = true }
        #expect(first.uid == second.uid)
        let old = await wireError { try await bench.apply(try #require(first.code), newPassword: Self.password) }
        #expect(old?.reason == "INVALID_OOB_CODE")
        bench.pass(seconds: 7 * 86_400)
        let late = await wireError { try await bench.apply(try #require(second.code), newPassword: Self.password) }
        #expect(late?.reason == "EXPIRED_OOB_CODE")
        #expect(await wireError { try await invite(bench) { $0.uid = "other" } }?.reason == "mail_not_configured")
        let other = await wireError {
            try await invite(bench) {
                $0.uid = "other"
                $0.returnCode = true
            }
        }
        #expect(other?.reason == "EMAIL_EXISTS")
    }
}
