import HatoMail
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Which mail is sent next, and what stops none of the others.
@Suite(.timeLimit(.minutes(10)))
struct MailOrderTests {
    private static let masuo = "masuo@example.com"

    private func bench(_ mails: MailCatcher) async throws -> AuthBench {
        let bench = try await AuthBench.mailing(to: mails) { $0.limits.codePauseMs = 0 }
        _ = try await bench.signUp(Self.masuo)
        return bench
    }

    private static func stalled(_ step: MailFailure.Step) -> MailOutcome {
        .temporary(MailFailure(step: step, code: 421, text: "<a@example.com>: not now", concernsServer: true))
    }

    @Test(arguments: [MailFailure.Step.recipient, .data, .content])
    func aMailThatEndsTheConnectionDoesNotDelayTheOthers(step: MailFailure.Step) async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, "a@example.com")
        mails.outcome(Self.stalled(step))
        try await bench.sendMails()
        #expect(bench.service.health.checks["mail"] == "on")
        mails.outcome(.accepted)
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == ["a@example.com", "b@example.com"])
        bench.pass(seconds: 61)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == ["a@example.com", "b@example.com", "a@example.com"])
    }

    @Test func whatEndsTheConnectionForManyMailsIsTheServersFailure() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for index in 0..<4 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        mails.outcome(Self.stalled(.recipient))
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == (0..<3).map { "a\($0)@example.com" })
        #expect(bench.service.health.checks["mail"] == "RCPT: 421", "no recipient is named")
        #expect(try await bench.queue().first?.error == "RCPT: 421 <a@example.com>: not now", "administrators read it")
    }

    @Test func mailsToProvedAddressesOfAccountsGoFirst() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        _ = try await bench.apply(try #require(try await bench.code(.verifyEmail).code))
        _ = try await bench.signUp("a0@example.com")
        for index in 0..<3 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        try await bench.request(.passwordReset, Self.masuo)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo] + (0..<3).map { "a\($0)@example.com" })
        // One that waits for its next attempt does not delay the others.
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.passwordReset, Self.masuo)
        try await bench.sendMails()
        mails.outcome(.accepted)
        try await bench.request(.signIn, "b@example.com")
        let wait = try #require(try await bench.sendMails())
        #expect(mails.mails.last?.to == "b@example.com" && (30_000...60_000).contains(wait))
    }

    @Test func aMailWhoseRecordCannotBeWrittenIsSentOnce() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, Self.masuo)
        let figures = try await bench.store.read { try $0.row(AuthKey.mailFigures) }
        _ = try await bench.store.write { $0.putRow(AuthKey.mailFigures, Array("damaged".utf8)) }
        for _ in 0..<3 { await #expect(throws: RecordError.self) { try await bench.sendMails() } }
        #expect(mails.mails.count == 1)
        _ = try await bench.store.write { $0.putRow(AuthKey.mailFigures, figures ?? []) }
        try await bench.sendMails()
        #expect(mails.mails.count == 1)
        #expect(try await bench.queue().isEmpty)
    }

    @Test func aClockThatIsSetBackStopsNoMail() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure(nil, concernsServer: true)))
        try await bench.request(.signIn, "a@example.com")
        try await bench.sendMails()
        bench.pass(seconds: -86_400)
        mails.outcome(.accepted)
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.signIn, "b@example.com")
        try await bench.sendMails()
        bench.pass(seconds: -86_400)
        mails.outcome(.accepted)
        try await bench.sendMails()
        #expect(try await bench.queue().isEmpty)
    }
}
