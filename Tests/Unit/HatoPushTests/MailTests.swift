import Foundation
import HatoMail
import HatoModel
import HatoTesting
import Testing

@testable import HatoPush

/// What e-mails say, and what replies of SMTP servers mean.
@Suite struct MailRequestTests {
    private let mailbox: Mailbox
    private let credentials: MailCredentials

    init() throws {
        mailbox = try Mailbox("masuo@例え.jp")
        var settings = MailCredentials.Settings(url: "smtp://127.0.0.1:25", from: "チャット <chat@example.com>")
        settings.tls = "none"
        credentials = try MailCredentials(settings)
    }

    private func message(
        title: String?, body: String?, link: String? = nil, digest: DeliveryContent.Digest? = nil
    ) throws -> MailMessage {
        var text = Notifier.NotificationText()
        (text.title, text.body) = (title, body)
        var content = DeliveryContent(notification: "ntf_1", device: "dev_1", uid: "u1", text: text)
        content.appearance.link = link
        content.digest = digest
        let delivery = Delivery(id: "ntf_1-0", address: .email(mailbox), content: content, createdAt: 1_795_000_000_000)
        return try MailRequest(delivery, to: mailbox, from: credentials).message
    }

    private func entry(_ title: String?, _ body: String?, link: String? = nil) -> DeliveryContent.Digest.Entry {
        var text = Notifier.NotificationText()
        (text.title, text.body) = (title, body)
        return .init(text: text, link: link)
    }

    @Test func titleIsTheSubjectAndBodyTheText() throws {
        let one = try message(title: "マスオさんからのメッセージ", body: "ただいま\n.", link: "https://example.com/c1")
        #expect(one.subject == "マスオさんからのメッセージ" && one.text == "ただいま\n.\n\nhttps://example.com/c1\n")
        #expect(one.id == "ntf_1-0" && one.to.text == "masuo@xn--r8jz45g.jp" && one.from.text == "chat@example.com")
        #expect(try message(title: "a", body: nil).text == "a\n")
        let bodyOnly = try message(title: nil, body: "ただいま\n今から帰ります")
        #expect(bodyOnly.subject == "ただいま 今から帰ります")
        #expect(throws: MailFieldError.self) { try message(title: " \n", body: nil) }
    }

    @Test(arguments: [
        "a\r\nBcc: all@example.com", "a\nBcc: all@example.com", "a\rBcc: all@example.com",
        "a\u{2028}Bcc: all@example.com", "a\u{85}Bcc: all@example.com", "a\0Bcc: all@example.com",
    ])
    func aTitleMakesNoHeader(title: String) throws {
        let message = try message(title: title, body: "x\r\n.\r\nMAIL FROM:<a@b.c>")
        #expect(message.subject == "a Bcc: all@example.com")
        #expect(message.subject.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
    }

    @Test func aLongTitleIsCutBetweenCharacters() throws {
        let subject = try message(title: String(repeating: "👨‍👩‍👧", count: 200), body: nil).subject
        #expect(subject.utf8.count <= 600 && subject.hasSuffix("👨‍👩‍👧…"))
    }

    @Test func aDigestHasItsTextsInOrderAndSaysWhatItLeavesOut() throws {
        var digest = DeliveryContent.Digest(entries: [entry("c", "3", link: "https://example.com/"), entry("a", "2")])
        digest.entries.append(entry("a", "1"))
        let whole = try message(title: "c", body: "3", digest: digest)
        #expect(whole.subject == "c (+2)" && whole.text == "a\n1\n\n2\n\nc\n3\nhttps://example.com/\n")
        (digest.more, digest.locale) = (7, "ja-JP")
        let cut = try message(title: "c", body: "3", digest: digest)
        #expect(cut.subject == "c (+9)" && cut.text.hasPrefix("これより前の通知7件は省略しました。\n\na\n1\n"))
        (digest.locale, digest.isAtLeast) = ("fr", true)
        let many = try message(title: "c", body: "3", digest: digest)
        #expect(many.subject == "c (+9…)" && many.text.hasPrefix("At least 7 earlier notifications are not shown.\n"))
    }

    @Test func aDigestIsBoundedAndKeepsTheNewest() throws {
        let long = String(repeating: "x", count: 60_000)
        let digest = DeliveryContent.Digest(entries: [entry("n", long), entry("m", long), entry("l", long)])
        let mail = try message(title: "n", body: long, digest: digest)
        #expect(mail.subject == "n (+2)" && mail.text.utf8.count < 70_000 && mail.text.contains("\n\nn\nx"))
        #expect(mail.text.hasPrefix("2 earlier notifications are not shown.\n"))
    }

    @Test func aMailSaysThatThereIsSomethingOfWhichItMayShowNoWords() throws {
        var digest = DeliveryContent.Digest(entries: [])
        for (count, locale, words) in [
            (1, nil, "New message"), (3, "en-GB", "3 new messages"), (1, "ja-JP", "新着メッセージ"),
            (3, "ja", "新着メッセージ3件"),
        ] {
            (digest.withheld, digest.locale) = (count, locale)
            let mail = try message(title: "secret", body: "secret", link: "https://secret.example.com", digest: digest)
            #expect(mail.subject == words && mail.text == words + "\n")
        }
        (digest.withheld, digest.more, digest.isAtLeast, digest.locale) = (100, 900, true, nil)
        #expect(try message(title: "secret", body: nil, digest: digest).subject == "At least 1000 new messages")
        // Beside others.
        (digest.withheld, digest.more, digest.isAtLeast) = (2, 0, false)
        digest.entries = [entry("a", "1")]
        let mail = try message(title: "secret", body: "secret", digest: digest)
        #expect(mail.subject == "a (+2)" && mail.text == "2 new messages\n\na\n1\n")
        (digest.withheld, digest.entries) = (0, [])
        #expect(throws: MailFieldError.self) { try message(title: "secret", body: "secret", digest: digest) }
    }

    // MARK: Replies

    private func outcome(
        _ step: MailFailure.Step, _ code: Int?, _ text: String = "no", concernsServer: Bool = false
    ) -> DeliveryOutcome {
        let failure = MailFailure(step: step, code: code, text: text, concernsServer: concernsServer)
        let isPermanent = (code ?? 0) >= 500 && !concernsServer
        return MailResponse(outcome: isPermanent ? .permanent(failure) : .temporary(failure), mailbox: mailbox)
            .deliveryOutcome
    }

    @Test func repliesMeanWhatTheTableSays() {
        #expect(
            MailResponse(outcome: .accepted, mailbox: mailbox).deliveryOutcome
                == .delivered(DeliveryResponse(status: 250)))
        for (outcome, name, status) in [
            (outcome(.recipient, 450), "failed", 450), (outcome(.content, 451), "failed", 451),
            (outcome(.connection, nil, concernsServer: true), "failed", nil),
            (outcome(.greeting, 421, concernsServer: true), "failed", nil),
            (outcome(.recipient, 421, concernsServer: true), "failed", nil),
            (outcome(.authentication, 535, concernsServer: true), "providerRefused", nil),
            (outcome(.sender, 530, concernsServer: true), "providerRefused", nil),
            (outcome(.startTLS, nil, concernsServer: true), "providerRefused", nil),
            (outcome(.handshake, nil, concernsServer: true), "providerRefused", nil),
            (outcome(.waiting, nil), "postponed", nil), (outcome(.content, nil, concernsServer: true), "failed", nil),
            (outcome(.recipient, 550, "5.1.1 no such user"), "deviceGone", 550),
            (outcome(.recipient, 550, "5.1.10 null MX"), "deviceGone", 550),
            (outcome(.recipient, 550, "5.2.1 disabled"), "deviceGone", 550),
            (outcome(.recipient, 550, "5.7.1 relaying denied"), "rejected", 550),
            (outcome(.recipient, 552, "5.2.2 mailbox full"), "rejected", 552),
            (outcome(.recipient, 550, "no such user"), "tokenRefused", 550),
            (outcome(.recipient, 554, "transaction failed"), "rejected", 554),
            (outcome(.content, 554, "5.7.1 spam"), "rejected", 554),
            (outcome(.content, 550, "5.1.1 too late"), "rejected", 550),
        ] as [(DeliveryOutcome, String, Int?)] {
            #expect("\(outcome)".hasPrefix("\(name)("), "\(outcome)")
            switch outcome {
            case .delivered(let response), .failed(let response, _), .postponed(let response),
                .deviceGone(let response, _), .tokenRefused(let response), .rejected(let response),
                .providerRefused(let response, _):
                #expect(response.status == status, "\(outcome)")
            }
        }
    }

    @Test func noReplyShowsTheAddress() {
        guard
            case .deviceGone(let response, _) = outcome(
                .recipient, 550, "5.1.1 <Masuo@xn--r8jz45g.jp>: Recipient address rejected")
        else {
            Issue.record("it is gone")
            return
        }
        #expect(response.error == "RCPT: 550 5.1.1 (the address) Recipient address rejected")
        guard case .tokenRefused(let other) = outcome(.recipient, 550, "masuo: no such user") else {
            Issue.record("it is refused")
            return
        }
        #expect(other.error == "RCPT: 550 (the address) no such user")
    }

    /// The server may check the content for longer than is waited for it, and then has it.
    @Test func aContentWithoutReplyIsNotRepeatedSoon() {
        let failed = outcome(.content, nil, concernsServer: true)
        guard case .failed(_, let retryAfter) = failed else {
            Issue.record("it is tried again: \(failed)")
            return
        }
        #expect(retryAfter == .seconds(600))
    }

    @Test func textsOfOtherLanguagesAndBlanksAreCounted() throws {
        var digest = DeliveryContent.Digest(entries: [.init(text: .init(), link: nil)])
        digest.entries.append(.init(text: .init(title: " "), link: nil))
        #expect(try message(title: "", body: "", digest: digest).subject == "2 new messages")
    }

    // MARK: Settings

    @Test func settingsThatAreWrongAreNamed() throws {
        func problem(_ change: (inout MailCredentials.Settings) -> Void) -> MailCredentials.Problem? {
            var settings = MailCredentials.Settings(url: "smtp://hato@mail.example.com", from: "chat@example.com")
            settings.password = Array("fly me home\nsecond line".utf8)
            change(&settings)
            do { _ = try MailCredentials(settings) } catch { return error }
            return nil
        }
        #expect(problem { _ in } == nil)
        for (member, change) in [
            ("url", { $0.url = "http://mail.example.com" }), ("from", { $0.from = "chat" }),
            ("from", { $0.from = "a\nb <chat@example.com>" }), ("tls", { $0.tls = "maybe" }),
            ("tls", { $0.tls = "none" }), ("password-file", { $0.password = nil }),
            ("url", { $0.url = "smtp://mail.example.com" }), ("authority-file", { $0.authorities = [1] }),
            ("password-file", { $0.password = [] }), ("locale", { $0.locale = "fr" }),
        ] as [(String, (inout MailCredentials.Settings) -> Void)] {
            let problem = problem(change)
            #expect(problem?.member == member, "\(member): \(String(describing: problem))")
            #expect(problem?.text.contains("mail-") != true && problem?.text.contains("fly me") != true)
        }
    }
}

/// The channel against a server of SMTP.
@Suite(.timeLimit(.minutes(5))) struct MailChannelTests {
    private func channel(_ sink: MailSink, timeout: Duration = .seconds(100)) throws -> MailChannel {
        var settings = MailCredentials.Settings(url: sink.url, from: "Chat <chat@example.com>")
        settings.tls = "none"
        var app = PushApp()
        app.mail = try MailCredentials(settings)
        var limits = MailChannel.Limits()
        limits.timeout = timeout
        let channel = MailChannel(limits: limits)
        channel.use(PushApps(["default": app]))
        return channel
    }

    private func delivery(_ id: String = "ntf_1-0", title: String = "サザエさん") throws -> Delivery {
        let content = DeliveryContent(notification: "ntf_1", device: "dev_1", uid: "u1", text: .init(title: title))
        let address = DeviceAddress.email(try Mailbox("masuo@example.com"))
        return Delivery(id: id, address: address, content: content, createdAt: 1_795_000_000_000)
    }

    @Test func mailsOfAnAppGoOverOneConnection() async throws {
        let sink = try await MailSink()
        let channel = try channel(sink)
        for id in ["ntf_1-0", "ntf_2-0"] {
            #expect(await channel.deliver(try delivery(id)) == .delivered(DeliveryResponse(status: 250)))
        }
        #expect(sink.connections == 1 && sink.commands.filter { $0 == "RCPT TO:<masuo@example.com>" }.count == 2)
        let encoded = Data("サザエさん".utf8).base64EncodedString()
        let mail = try #require(sink.messages.first)
        #expect(mail.contains("\r\nSubject: =?UTF-8?B?\(encoded)?=\r\n"))
        #expect(mail.contains("\r\nMessage-ID: <ntf_1-0@example.com>\r\n"))
        #expect(mail.contains("\r\nAuto-Submitted: auto-generated\r\n"))
        await channel.shutdown()
        await sink.stop()
    }

    @Test func refusalsOfTheServerComeBack() async throws {
        let sink = try await MailSink(["RCPT": "550 5.1.1 no such user"])
        let channel = try channel(sink)
        guard case .deviceGone = await channel.deliver(try delivery()) else {
            Issue.record("gone")
            return
        }
        sink.reply(to: "RCPT", nil)
        sink.reply(to: "MAIL", "530 5.7.0 sign in first")
        guard case .providerRefused = await channel.deliver(try delivery()) else {
            Issue.record("refused")
            return
        }
        var other = try delivery()
        other.app = "other"
        guard case .providerRefused(let response, _) = await channel.deliver(other) else {
            Issue.record("no credentials")
            return
        }
        #expect(response.error == "the app \"other\" has no mail credentials")
        await channel.shutdown()
        await sink.stop()
    }

    @Test func aServerThatDoesNotReplyEndsTheAttemptInTime() async throws {
        let sink = try await MailSink(["CONTENT": "250-"])
        let channel = try channel(sink, timeout: .milliseconds(200))
        guard case .failed(let response, _) = await channel.deliver(try delivery()) else {
            Issue.record("failed")
            return
        }
        #expect(response.status == nil)
        await channel.shutdown()
        await sink.stop()
    }

    @Test func aPreviewIsWhatWouldBeSentWithoutTheAddress() async throws {
        let sink = try await MailSink()
        let channel = try channel(sink)
        var delivery = try delivery()
        delivery.content.text.body = "ただいま"
        let preview = try #require(channel.preview(of: delivery))
        #expect(
            preview.headers == [
                "from": "Chat <chat@example.com>", "subject": "サザエさん", "message-id": "<ntf_1-0@example.com>",
            ])
        #expect(preview.body == "ただいま\n" && sink.connections == 0)
        delivery.app = "other"
        #expect(channel.preview(of: delivery) == nil)
        (delivery.app, delivery.content.neutralText) = (Delivery.defaultApp, "New message")
        let neutral = try #require(channel.preview(of: delivery))
        #expect(neutral.headers["subject"] == "New message" && neutral.body == "New message\n")
        (delivery.content.text, delivery.content.neutralText) = (.init(), nil)
        #expect(channel.preview(of: delivery) == nil)
        await channel.shutdown()
        await sink.stop()
    }

    @Test func aCheckSendsNothing() async throws {
        let sink = try await MailSink()
        let channel = try channel(sink)
        #expect(await channel.problem(of: "default") == nil)
        try await eventually("it has left") { sink.commands.last == "QUIT" }
        #expect(sink.commands.allSatisfy { $0.hasPrefix("EHLO") || $0 == "QUIT" } && sink.messages.isEmpty)
        sink.reply(to: "EHLO", "554 no service")
        let problem = try #require(await channel.problem(of: "default"))
        #expect(problem.hasPrefix("The SMTP server 127.0.0.1:") && problem.hasSuffix("EHLO: 554 no service"))
        await sink.stop()
        #expect(await channel.problem(of: "default")?.contains("cannot be used") == true)
        #expect(await channel.problem(of: "none") == nil)
        await channel.shutdown()
    }
}
