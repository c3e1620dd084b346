import HatoModel
import HatoStorage
import Testing

@testable import HatoAuth

/// Codes without digits: invitations, and what brings an address back.
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

    /// The account of Masuo, whose address is verified, and a service that sends mails.
    private func verified(_ mails: MailCatcher) async throws -> (AuthBench, Auth.Session) {
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        let session = try await bench.signUp(Self.masuo)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        return (bench, session)
    }

    private func change(
        _ bench: AuthBench, _ session: Auth.Session, to email: String
    ) async throws -> Auth.Account.Update.Result {
        try await bench.service.accounts.updateAccount(
            Auth.Account.Update(email: email), try await bench.origin(session))
    }

    @Test func theFormerAddressBringsItselfBack() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        let changed = try await change(bench, session, to: "thief@example.com")
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.to == Self.masuo && mail.type == .recoverEmail && mail.text.contains(mail.code))
        #expect(mail.text.contains(Self.masuo) && !mail.text.contains("thief"))
        let found = try await bench.apply(mail.code)
        #expect(found == Auth.Code.Found(type: .recoverEmail, email: Self.masuo))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo && account.emailVerified)
        let token = try #require(changed.refreshToken)
        #expect(await wireError { try await bench.refresh(token) }?.reason == "INVALID_REFRESH_TOKEN")
        #expect(await wireError { try await bench.apply(mail.code) }?.reason == "INVALID_OOB_CODE")
        try await bench.sendMails()
        #expect(mails.mails.count == 1, "the address of the thief gets none")
    }

    @Test func thiefThatChangesTheAddressTwiceGetsNoCode() async throws {
        let mails = MailCatcher()
        let (bench, session) = try await verified(mails)
        try await bench.request(.changeEmail, by: try await bench.origin(session)) { $0.newEmail = "thief@example.com" }
        try await bench.sendMails()
        _ = try await bench.apply(try #require(mails.mails.first?.code))
        let thief = try await bench.signIn("thief@example.com")
        _ = try await change(bench, thief, to: "other@example.com")
        try await bench.sendMails()
        #expect(mails.mails.map(\.type) == [.changeEmail, .recoverEmail])
        #expect(mails.mails.last?.to == Self.masuo)
        _ = try await bench.apply(try #require(mails.mails.last?.code))
        let account = try await bench.service.users.user(Auth.Users.Get(uid: session.uid))
        #expect(account.email == Self.masuo)
    }

    @Test func anAddressThatWasNeverVerifiedGetsNoCode() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        let session = try await bench.signUp("typo@example.com")
        _ = try await change(bench, session, to: Self.masuo)
        try await bench.sendMails()
        #expect(mails.mails.isEmpty)
    }
}
