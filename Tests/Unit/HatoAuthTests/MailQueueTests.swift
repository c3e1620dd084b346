import HatoMail
import HatoModel
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoAuth

/// The mail queue: durable with its code, sent after the response, tried again, bounded.
@Suite(.timeLimit(.minutes(10)))
struct MailQueueTests {
    private static let masuo = "masuo@example.com"

    private func bench(
        _ mails: MailCatcher, _ change: (inout AuthConfiguration) -> Void = { _ in }
    ) async throws -> AuthBench {
        let bench = try await AuthBench.mailing(to: mails) {
            $0.limits.codePauseMs = 0
            $0.limits.codesPerHourMax = 0
            $0.links = CodeLinks(actionUrl: "https://example.com/account")
            change(&$0)
        }
        _ = try await bench.signUp(Self.masuo)
        return bench
    }

    @Test func aMailOutlivesARestartAndIsSentOnce() async throws {
        let mails = MailCatcher()
        let first = try await bench(mails)
        try await first.request(.passwordReset, Self.masuo)
        let second = try await AuthBench.mailing(to: mails, since: first)
        #expect(try await second.queue().map(\.to) == [Self.masuo])
        try await second.sendMails()
        try await second.sendMails()
        #expect(mails.mails.count == 1)
        #expect(try await second.queue().isEmpty)
        #expect(try await second.store.read { try MailFigures.find(in: $0) } == MailFigures())
    }

    @Test func theServiceSendsByItself() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        let sender = Task { await bench.service.mail?.run() }
        try await bench.request(.passwordReset, Self.masuo)
        try await eventually("the mail is sent") { mails.mails.count == 1 }
        try await bench.request(.verifyEmail, Self.masuo, by: CallOrigin(caller: .administrator))
        try await eventually("the next one too") { mails.mails.count == 2 }
        sender.cancel()
        await sender.value
    }

    @Test func aMailThatIsNotTakenForNowIsTriedAgain() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.signIn, Self.masuo)
        let wait = try #require(try await bench.sendMails())
        #expect((30_000...60_000).contains(wait), "\(wait)")
        #expect(bench.service.health.status == .ready, "the server works, and takes other mails")
        let entry = try #require(try await bench.queue(.waiting).first)
        #expect(entry.attempts == 1 && entry.error == "RCPT: 450 not now" && entry.nextAt == bench.now + wait)
        bench.pass(seconds: 60)
        mails.outcome(.accepted)
        try await bench.sendMails()
        #expect(mails.mails.count == 2 && mails.mails[0].code == mails.mails[1].code)
        #expect(mails.composed[0].message.id == mails.composed[1].message.id, "mail programs show it once")
        #expect(try await bench.queue().isEmpty)
    }

    @Test func attemptsEndWhenTheCodeDoes() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure()))
        try await bench.request(.verifyEmail, Self.masuo, by: CallOrigin(caller: .administrator))
        let start = bench.now
        var attempts = 0
        while let wait = try await bench.sendMails() {
            bench.pass(seconds: wait / 1000 + 1)
            attempts += 1
        }
        #expect(bench.now - start <= 86_400_000 && bench.now - start > 80_000_000, "a day")
        #expect((24...60).contains(attempts), "\(attempts)")
        let dead = try #require(try await bench.queue(.dead).first)
        #expect(dead.nextAt == nil && dead.error == "RCPT: 450 not now")
    }

    @Test func digitsAreLeftOutOfALateMail() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, Self.masuo)
        bench.pass(seconds: 601)
        try await bench.sendMails()
        let mail = try #require(mails.mails.first)
        #expect(mail.digits == nil && mail.link != nil && !mail.text.contains("10 minutes"))
    }

    @Test func aRefusedMailIsDeadAndReplayed() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.permanent(MailCatcher.failure(550)))
        try await bench.request(.signIn, Self.masuo)
        #expect(try await bench.sendMails() == nil)
        let dead = try #require(try await bench.queue(.dead).first)
        #expect(dead.error == "RCPT: 550 not now" && dead.attempts == 1)
        mails.outcome(.accepted)
        #expect(try await bench.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)).mails == 1)
        try await bench.sendMails()
        #expect(mails.mails.count == 2)
        let gone = await wireError { try await bench.service.mails.replay(Auth.Mail.Replay(mail: dead.mail)) }
        #expect(gone?.reason == "mail_not_found" && gone?.code == .notFound)
    }

    @Test func deadMailsAreDroppedAndDeletedLater() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.permanent(MailCatcher.failure(550)))
        for index in 0..<5 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
            try await bench.sendMails()
        }
        let dead = try await bench.queue(.dead)
        #expect(dead.map(\.to) == (0..<5).map { "a\($0)@example.com" })
        #expect(try await bench.service.mails.drop(Auth.Mail.Drop(mail: dead[2].mail)).mails == 1)
        bench.pass(seconds: 7 * 86_400 - 3)
        try await CodeUpkeep(service: bench.service).forgetExpired()
        #expect(try await bench.queue(.dead).map(\.to) == ["a3@example.com", "a4@example.com"])
        #expect(try await bench.service.mails.replay(Auth.Mail.Replay(all: true)).mails == 0, "their codes are over")
        #expect(try await bench.service.mails.drop(Auth.Mail.Drop(all: true)).mails == 2)
        #expect(try await bench.store.read { try MailFigures.find(in: $0) } == MailFigures())
    }

    @Test func whileTheServerRefusesHealthIsDegradedAndAllMailsWait() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        mails.outcome(.temporary(MailCatcher.failure(nil, concernsServer: true)))
        for index in 0..<3 { try await bench.request(.signIn, "a\(index)@example.com") }
        let pause = try #require(try await bench.sendMails())
        #expect((500...1000).contains(pause) && mails.mails.count == 1)
        #expect(bench.service.health.status == .degraded)
        #expect(bench.service.health.checks["mail"] == "connection: not now")
        #expect(try await bench.sendMails() == pause, "nothing is sent meanwhile")
        var longest: Int64 = 0
        for _ in 0..<12 {
            bench.pass(seconds: 300)
            longest = max(longest, try #require(try await bench.sendMails()))
        }
        #expect((150_000...300_000).contains(longest))
        mails.outcome(.accepted)
        bench.pass(seconds: 300)
        try await bench.sendMails()
        #expect(try await bench.queue().isEmpty)
        #expect(bench.service.health.status == .ready)
    }

    @Test func aMailWhoseCodeIsOverIsNotSent() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, Self.masuo)
        try await bench.request(.signIn, Self.masuo)
        try await bench.request(.passwordReset, Self.masuo)
        let used = try #require(try await bench.code(.passwordReset).code)
        _ = try await bench.apply(used, newPassword: "isono-and-namihei")
        try await bench.sendMails()
        #expect(mails.mails.map(\.type) == [.signIn], "the newest only")
        #expect(try await bench.queue().isEmpty)
    }

    @Test func aFullQueueRefusesWhenNoMailIsDead() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails) { $0.limits.mailQueueMax = 3 }
        mails.outcome(.permanent(MailCatcher.failure(550)))
        try await bench.request(.signIn, "dead@example.com")
        try await bench.sendMails()
        for index in 0..<3 { try await bench.request(.signIn, "a\(index)@example.com") }
        #expect(try await Set(bench.queue().map(\.to)) == Set((0..<3).map { "a\($0)@example.com" }))
        for address in [Self.masuo, "nobody@example.com"] {
            let full = await wireError { try await bench.request(.passwordReset, address) }
            #expect(full?.reason == "mail_queue_full" && full?.retryAfter != nil, "known or not")
        }
        let code = try await bench.store.read { try CodeRows.find(.passwordReset, to: Self.masuo, in: $0) }
        #expect(code == nil, "no code without its mail")
    }

    @Test func aQueueOfTooManyBytesRefuses() async throws {
        let bench = try await bench(MailCatcher()) { $0.limits.mailQueueBytesMax = 1000 }
        var error: RPCError?
        var count = 0
        while error == nil, count < 100 {
            error = await wireError { try await bench.request(.signIn, "a\(count)@example.com") }
            count += 1
        }
        #expect(error?.reason == "mail_queue_full" && (3...6).contains(count))
    }

    @Test func theQueueIsListedInPages() async throws {
        let bench = try await bench(MailCatcher())
        for index in 0..<5 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        var request = Auth.Mail.List()
        request.limit = 2
        var found: [String] = []
        repeat {
            let page = try await bench.service.mails.mails(request)
            found += page.mails.map(\.to)
            request.after = page.after
        } while request.after != nil
        #expect(found == (0..<5).map { "a\($0)@example.com" })
        request.after = "x"
        #expect(await wireError { try await bench.service.mails.mails(request) }?.data["parameter"] == "after")
    }

    @Test func figuresAreThoseOfTheRowsAfterAnyHistory() async throws {
        var random = SeededRandom(seed: SeededRandom.seed())
        let mails = MailCatcher()
        let bench = try await bench(mails) { $0.limits.mailQueueMax = 12 }
        for step in 0..<200 {
            switch Int.random(in: 0..<7, using: &random) {
            case 0: mails.outcome(.accepted)
            case 1: mails.outcome(.temporary(MailCatcher.failure()))
            case 2: mails.outcome(.permanent(MailCatcher.failure(550)))
            case 3: try await bench.sendMails()
            case 4: bench.pass(seconds: Int64.random(in: 0..<4000, using: &random))
            default: _ = try? await bench.request(.signIn, "a\(Int.random(in: 0..<20, using: &random))@example.com")
            }
            let (figures, rows) = try await bench.store.read { rows in
                (try MailFigures.find(in: rows), try MailRows.page(after: nil, nil, limit: 100, in: rows))
            }
            var counted = MailFigures()
            for mail in rows {
                if mail.nextAt == nil { counted.dead += 1 } else { counted.waiting += 1 }
                counted.bytes += mail.bytes.count
            }
            #expect(figures == counted && rows.count <= 12, "step \(step)")
        }
    }

    @Test func aRowThatCannotBeReadStopsNoOtherMail() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        for index in 0..<3 {
            try await bench.request(.signIn, "a\(index)@example.com")
            bench.pass(seconds: 1)
        }
        let found = try await bench.store.read { try MailRows.page(after: nil, nil, limit: 3, in: $0) }
        try #require(found.count == 3)
        _ = try await bench.store.write { rows in
            rows.putRow(AuthKey.mail(found[0].id), Array("damaged".utf8))
            rows.putRow(AuthKey.code(found[1].code), Array("damaged".utf8))
            rows.putRow(AuthKey.mailFigures, Array("damaged".utf8))
        }
        #expect(try await bench.queue().count == 2)
        try await bench.sendMails()
        #expect(mails.mails.map(\.to) == ["a2@example.com"])
        #expect(try await bench.queue().isEmpty)
    }

    @Test func noSecretIsInAFailureOrADescription() async throws {
        let mails = MailCatcher()
        let bench = try await bench(mails)
        try await bench.request(.signIn, Self.masuo)
        try await bench.sendMails()
        let mail = try #require(mails.composed.first)
        for secret in [mail.entry.code, mail.entry.digits, mail.entry.link] {
            #expect(mail.message.secrets.contains(try #require(secret)))
        }
        #expect(!"\(mail.message)".contains(mail.entry.code))
    }
}
