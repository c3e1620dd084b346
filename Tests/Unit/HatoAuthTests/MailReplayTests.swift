import HatoMail
import HatoModel
import HatoRPC
import HatoStorage
import Testing

@testable import HatoAuth

/// Dead mails: which are sent again, and which are deleted for others.
@Suite(.timeLimit(.minutes(10)))
struct MailReplayTests {
    private static let masuo = "masuo@example.com"

    private static func dead(_ index: Int) -> MailRecord {
        let id = MailRecord.id(at: Int64(index), random: [UInt8](repeating: 0, count: 8))
        let noCode = [UInt8](repeating: 0, count: CodeRecord.idBytes)
        return MailRecord(
            id: id, code: noCode, to: "a\(index)@example.com", type: .signIn, locale: "en", createdAt: 0, until: 0)
    }

    private func addDead(_ count: Int, to bench: AuthBench) async throws {
        _ = try await bench.store.write { rows in
            var queue = try MailQueueChange(AuthLimits(), in: rows)
            for index in 0..<count { try queue.add(Self.dead(index), in: rows) }
            queue.finish(in: rows)
        }
    }

    @Test func anInvitationThatWasNotSentInADayIsReplayed() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        mails.outcome(.temporary(MailCatcher.failure(nil, concernsServer: true)))
        _ = try await InviteMethod(service: bench.service).invite(Auth.Users.Invite(email: Self.masuo))
        bench.pass(seconds: 25 * 3600)
        try await bench.sendMails()
        let dead = try #require(try await bench.queue(.dead).first)
        #expect(dead.error == "the server did not accept it in a day" && mails.mails.isEmpty)
        mails.outcome(.accepted)
        #expect(try await bench.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)).mails == 1)
        try await bench.sendMails()
        let code = try #require(mails.mails.last?.code)
        _ = try await bench.apply(code, newPassword: "isono-and-namihei")
    }

    @Test func aMailWhoseCodeHasExpiredIsNotReplayed() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        _ = try await bench.signUp(Self.masuo)
        try await bench.request(.passwordReset, Self.masuo)
        bench.pass(seconds: 601)
        try await bench.sendMails()
        let dead = try #require(try await bench.queue(.dead).first)
        #expect(dead.error == "its code expired before the server accepted it", "it has digits only")
        #expect(try await bench.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)).mails == 0)
    }

    @Test func aMailWhosePageIsNotAllowedAnyMoreIsNotReplayed() async throws {
        let mails = MailCatcher()
        let first = try await AuthBench.mailing(to: mails) { $0.continueDomains = ["example.com"] }
        _ = try await first.signUp(Self.masuo)
        try await first.request(.passwordReset, Self.masuo) { $0.continueUrl = "https://example.com/" }
        first.pass(seconds: 601)
        let later = try await AuthBench.mailing(to: mails, since: first)
        try await later.sendMails()
        let dead = try #require(try await later.queue(.dead).first)
        #expect(dead.error == "continueUrl is not allowed any more, and the digits have expired")
        #expect(try await later.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)).mails == 0)
        #expect(try await later.service.mails.replay(Auth.Mail.Replay(all: true)).mails == 0)
        let again = try await AuthBench.mailing(to: mails, since: first) { $0.continueDomains = ["example.com"] }
        #expect(try await again.service.mails.replay(Auth.Mail.Replay(all: true)).mails == 1)
        try await again.sendMails()
        #expect(mails.mails.count == 1 && mails.mails.last?.link?.hasPrefix("https://example.com/?mode=") == true)
    }

    @Test func aMailThatNeverHadAPageOfItsOwnSaysSo() async throws {
        let mails = MailCatcher()
        let first = try await AuthBench.mailing(to: mails) { $0.links = CodeLinks(actionUrl: "https://example.com/a") }
        _ = try await first.signUp(Self.masuo)
        try await first.request(.passwordReset, Self.masuo)
        first.pass(seconds: 601)
        let later = try await AuthBench.mailing(to: mails, since: first)
        try await later.sendMails()
        let dead = try #require(try await later.queue(.dead).first)
        #expect(dead.error == "action-url is not set any more, and the digits have expired")
        #expect(try await later.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)).mails == 0)
    }

    @Test func mailsBehindAThousandThatAreOfNoUseAreReplayed() async throws {
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        try await addDead(1_001, to: bench)
        mails.outcome(.permanent(MailCatcher.failure(550)))
        _ = try await InviteMethod(service: bench.service).invite(Auth.Users.Invite(email: Self.masuo))
        try await bench.sendMails()
        mails.outcome(.accepted)
        #expect(try await bench.service.mails.replay(Auth.Mail.Replay(all: true)).mails == 1)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == [Self.masuo, Self.masuo])
        #expect(try await bench.service.mails.drop(Auth.Mail.Drop(all: true)).mails == 1_000)
        #expect(try await bench.store.read { try MailFigures.find(in: $0) }.dead == 1)
    }

    // MARK: A full queue

    @Test func severalDeadMailsAreDeletedForALongOne() async throws {
        let bench = try await AuthBench.mailing(to: MailCatcher()) {
            $0.limits.mailQueueBytesMax = 10_000
            $0.limits.codePauseMs = 0
            $0.continueDomains = ["example.com"]
        }
        _ = try await bench.signUp(Self.masuo)
        try await addDead(9_900 / Self.dead(99).bytes.count, to: bench)
        let dead = try await bench.queue(.dead).count
        for address in ["kept@example.com", Self.masuo, "other@example.com"] {
            try await bench.request(.passwordReset, address) {
                $0.continueUrl = "https://example.com/" + String(repeating: "a", count: 1_900)
            }
        }
        let queue = try await bench.queue()
        #expect(queue.filter { $0.state == .waiting }.map(\.to) == [Self.masuo])
        #expect(dead - queue.filter { $0.state == .dead }.count > 1)
        #expect(try await bench.store.read { try MailFigures.find(in: $0) }.bytes <= 10_000)
    }

    @Test func whereTooFewMailsAreDeadEveryAddressIsRefused() async throws {
        let first = try await AuthBench.mailing(to: MailCatcher())
        _ = try await first.signUp(Self.masuo)
        try await addDead(1_200, to: first)
        let bench = try await AuthBench.mailing(to: MailCatcher(), since: first) {
            $0.limits.mailQueueMax = 100
            $0.limits.codePauseMs = 0
        }
        for address in [Self.masuo, "other@example.com"] {
            let full = await wireError { try await bench.request(.passwordReset, address) }
            #expect(full?.reason == "mail_queue_full", "\(address)")
        }
        let less = try await AuthBench.mailing(to: MailCatcher(), since: first) {
            $0.limits.mailQueueMax = 300
            $0.limits.codePauseMs = 0
        }
        for address in [Self.masuo, "other@example.com"] { try await less.request(.passwordReset, address) }
        #expect(try await less.store.read { try MailFigures.find(in: $0) }.dead == 299)
    }

    // MARK: Figures

    @Test(arguments: 0..<3)
    func figuresThatCannotBeRightAreCountedAnew(damage: Int) async throws {
        let rows = [
            Array("damaged".utf8), RecordCodec.encode(MailFigures(waiting: -1, dead: 0, bytes: 0)),
            RecordCodec.encode(MailFigures(waiting: 1, dead: .max, bytes: .max)),
        ]
        let mails = MailCatcher()
        let bench = try await AuthBench.mailing(to: mails)
        try await bench.request(.signIn, "a@example.com")
        _ = try await bench.store.write { $0.putRow(AuthKey.mailFigures, rows[damage]) }
        try await bench.request(.signIn, "b@example.com")
        let figures = try await bench.store.read { try MailFigures.find(in: $0) }
        #expect(figures.waiting == 2 && figures.dead == 0 && figures.bytes > 0)
        _ = try await bench.store.write { $0.putRow(AuthKey.mailFigures, rows[damage]) }
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
        #expect(try await bench.store.read { try MailFigures.find(in: $0) } == MailFigures())
    }
}
