import Testing

@testable import HatoMail

/// The conversation with a server that behaves, and what is sent to it.
struct StateMachineTests {
    @Test func messageGoesOverTLSAfterSigningIn() throws {
        var it = try Conversation.begun(credentials: Mails.credentials)
        #expect(it.sent.isEmpty && it.deadline == SMTPLimits().greetingTimeout)
        it.replies("220-mail.example", "220 ready")
        #expect(it.last == "EHLO [192.0.2.1]\r\n")
        it.replies(Mails.offers)
        #expect(it.last == "STARTTLS\r\n" && !it.hasBegunTLS)
        it.replies("220 go")
        #expect(it.hasBegunTLS && it.sent.count == 2)
        it.establishTLS()
        #expect(it.last == "EHLO [192.0.2.1]\r\n")
        it.replies(Mails.offers)
        #expect(it.last == "AUTH PLAIN AGhhdG9AZXhhbXBsZS5jb20AZmx5IG1lIGhvbWU=\r\n")
        it.replies("235 welcome")
        #expect(it.last == "MAIL FROM:<noreply@example.org>\r\n")
        it.replies("250 ok")
        #expect(it.last == "RCPT TO:<masuo@example.com>\r\n")
        it.replies("250 ok")
        #expect(it.last == "DATA\r\n")
        it.replies("354 go on")
        #expect(it.last?.hasSuffix("\r\n.\r\n") == true && it.deadline == SMTPLimits().contentTimeout)
        it.replies("250 2.0.0 queued as 1")
        #expect(it.outcomes == [.accepted] && it.deadline == SMTPLimits().keptFor && it.machine.takesMessage)
    }

    @Test func implicitTLSComesBeforeTheGreeting() throws {
        var it = try Conversation.begun(.implicitTLS)
        it.receive("220 in clear\r\n")
        #expect(it.sent.isEmpty && it.deadline == SMTPLimits().handshakeTimeout)
        it.establishTLS()
        it.replies("220 ready", Mails.offers)
        #expect(it.sent == ["EHLO [192.0.2.1]\r\n", "MAIL FROM:<noreply@example.org>\r\n"])
    }

    @Test func whatCameInClearAfterSTARTTLSIsThrownAway() throws {
        var it = try Conversation.begun(credentials: Mails.credentials)
        it.replies("220 ready", Mails.offers)
        it.receive("220 go\r\n" + Mails.offers + "\r\n235 welcome\r\n250 ok\r\n25")
        it.receive("0 more\r\n")
        it.establishTLS()
        #expect(it.sent == ["EHLO [192.0.2.1]\r\n", "STARTTLS\r\n", "EHLO [192.0.2.1]\r\n"])
        // The extensions offered in clear are forgotten, too.
        it.replies("250 mail.example")
        #expect(it.failure?.text == "the server offers neither AUTH PLAIN nor AUTH LOGIN")
    }

    @Test func replyBeyondTheOneToACommandEndsTheConnection() throws {
        for count in 1...8 where count != 3 {
            var it = try Conversation.atMail(upTo: count - 1)
            it.receive(Conversation.good[count - 1] + "\r\n250 injected\r\n")
            #expect(it.isClosed && it.outcome?.isTemporary == true, "\(count)")
            #expect(it.failure?.text == "the server sent more than one reply to a command")
        }
    }

    @Test func serverWithoutSTARTTLSGetsNothing() throws {
        var it = try Conversation.begun(credentials: Mails.credentials)
        it.replies("220 ready", "250-mail.example\r\n250 AUTH PLAIN LOGIN")
        #expect(it.sent == ["EHLO [192.0.2.1]\r\n", "QUIT\r\n"] && it.isClosed)
        #expect(it.failure?.text == "the server does not offer STARTTLS; nothing is sent without TLS")
        #expect(it.failure?.concernsServer == true && it.outcome?.isTemporary == true)
    }

    @Test func passwordIsNeverSentWithoutTLS() throws {
        var it = try Conversation.begun(.none, credentials: Mails.credentials)
        it.replies("220 ready", Mails.offers)
        #expect(it.sent == ["EHLO [192.0.2.1]\r\n", "QUIT\r\n"])
        #expect(it.failure?.text == "no password is sent without TLS")
        var without = try Conversation.begun(.none)
        without.replies("220 ready", Mails.offers)
        #expect(without.last == "MAIL FROM:<noreply@example.org>\r\n")
    }

    @Test func loginIsUsedWherePlainIsNotOffered() throws {
        var it = try Conversation.begun(.implicitTLS, credentials: Mails.credentials)
        it.establishTLS()
        it.replies("220 ready", Mails.offersLess)
        #expect(it.last == "AUTH LOGIN\r\n")
        it.replies("334 VXNlcm5hbWU6")
        #expect(it.last == "aGF0b0BleGFtcGxlLmNvbQ==\r\n")
        it.replies("334 UGFzc3dvcmQ6")
        #expect(it.last == "Zmx5IG1lIGhvbWU=\r\n")
        it.replies("235 welcome")
        #expect(it.last == "MAIL FROM:<noreply@example.org>\r\n")
    }

    @Test func longCredentialsAreSentInALineOfTheirOwn() throws {
        let long = String(repeating: "x", count: 255)
        var it = try Conversation.begun(.implicitTLS, credentials: SMTPCredentials(user: long, password: long))
        it.establishTLS()
        it.replies("220 ready", Mails.offers)
        #expect(it.last == "AUTH PLAIN\r\n")
        it.replies("334 ")
        #expect(it.last?.utf8.count == 686)
        it.replies("235 welcome")
        #expect(it.last == "MAIL FROM:<noreply@example.org>\r\n")
    }

    @Test func addressesBeyondASCIINeedSMTPUTF8() throws {
        var it = try Conversation.begun(.implicitTLS, message: Mails.message(to: "鳩@例え.jp"))
        it.establishTLS()
        it.replies("220 ready", Mails.offers)
        #expect(it.last == "MAIL FROM:<noreply@example.org> BODY=8BITMIME SMTPUTF8\r\n")
        it.replies("250 ok")
        #expect(it.last == "RCPT TO:<鳩@xn--r8jz45g.jp>\r\n")
        var other = try Conversation.begun(.implicitTLS, message: Mails.message(to: "鳩@例え.jp"))
        other.establishTLS()
        other.replies("220 ready", Mails.offersLess)
        #expect(other.outcome?.isPermanent == true && !other.isClosed)
        var refused = try Conversation.atMail(message: Mails.message(to: "鳩@例え.jp"))
        refused.replies("553 5.6.7 not here")
        #expect(refused.outcome?.isPermanent == true, "its parameter may be why")
        // Domains have a form in ASCII, which every server takes.
        other.submit(try Mails.message(to: "masuo@例え.jp"))
        #expect(other.last == "MAIL FROM:<noreply@example.org>\r\n")
        other.replies("250 ok")
        #expect(other.last == "RCPT TO:<masuo@xn--r8jz45g.jp>\r\n")
    }

    // MARK: Kept connections

    @Test func keptConnectionTakesMessagesUpToItsLimitAndThenQuits() throws {
        var limits = SMTPLimits()
        limits.messagesPerConnectionMax = 3
        var it = try Conversation.atMail(limits: limits)
        for count in 1...3 {
            if count > 1 { it.submit(try Mails.message()) }
            #expect(it.last == "MAIL FROM:<noreply@example.org>\r\n")
            it.replies("250 ok", "250 ok", "354 go on", "250 queued")
            #expect(it.outcomes == Array(repeating: .accepted, count: count))
        }
        #expect(it.last == "QUIT\r\n" && !it.machine.takesMessage && it.machine.isEnding)
        it.replies("221 bye")
        #expect(it.isClosed && it.outcomes.count == 3)
    }

    @Test func unusedConnectionQuitsAfterItsTime() throws {
        var it = try Conversation.atMail()
        it.replies("250 ok", "250 ok", "354 go on", "250 queued")
        #expect(it.deadline == .seconds(30))
        it.passDeadline()
        #expect(it.last == "QUIT\r\n" && it.deadline == SMTPLimits().quitTimeout && it.machine.isEnding)
        it.passDeadline()
        #expect(it.isClosed && it.deadline == nil && it.outcomes == [.accepted])
    }

    @Test func refusedMessageIsResetAndTheConnectionKept() throws {
        var it = try Conversation.atMail()
        it.replies("250 ok", "550 5.1.1 no such user")
        #expect(it.last == "RSET\r\n" && it.outcome?.isPermanent == true)
        #expect(it.failure?.description == "RCPT: 550 5.1.1 no such user")
        #expect(!it.machine.takesMessage && !it.machine.isEnding)
        it.replies("250 ok")
        #expect(it.machine.takesMessage)
        it.submit(try Mails.message())
        it.replies("250 ok", "250 ok", "354 go on", "250 queued")
        #expect(it.outcomes.last == .accepted)
    }

    /// Whether the message may go to another connection: only from one that was kept, before the content.
    @Test(arguments: ["closed", "421 idle for too long", "nonsense", "deadline"])
    func endOfAKeptConnectionIsNoFailureOfTheMessage(end: String) throws {
        for replies in [[], ["250 ok"], ["250 ok", "250 ok"], ["250 ok", "250 ok", "354 go on"]] {
            for isKept in [true, false] {
                var it = try Conversation.atMail()
                if isKept {
                    it.replies("250 ok", "250 ok", "354 go on", "250 queued")
                    it.submit(try Mails.message())
                }
                for reply in replies { it.replies(reply) }
                switch end {
                case "closed": it.close()
                case "deadline": it.passDeadline()
                default: it.replies(end)
                }
                #expect(it.isClosed && it.isUnsent == (isKept && replies.count < 3))
                #expect(it.outcomes.filter(\.isTemporary).count == (it.isUnsent ? 0 : 1))
            }
        }
    }

    @Test func stoppedMessageIsNotSentAgain() throws {
        var it = try Conversation.atMail()
        it.replies("250 ok", "250 ok", "354 go on", "250 queued")
        it.submit(try Mails.message())
        it.run(it.machine.stopped("the client is closed"))
        #expect(!it.isUnsent && it.failure?.text == "the client is closed" && it.isClosed)
    }

    @Test func replyToNoCommandEndsAnUnusedConnection() throws {
        var it = try Conversation.atMail()
        it.replies("250 ok", "250 ok", "354 go on", "250 queued", "421 going down")
        #expect(it.isClosed && it.outcomes == [.accepted])
    }
}

extension Conversation {
    /// The replies of a server that behaves. TLS is established after the third.
    static let good = [
        "220 ready", Mails.offers, "220 go", Mails.offers, "235 welcome", "250 ok", "250 ok", "354 go on",
        "250 queued",
    ]

    /// A conversation with a message, after so many of these replies.
    static func atMail(upTo count: Int, secrets: [String] = []) throws -> Conversation {
        var conversation = try begun(credentials: Mails.credentials, message: Mails.message(secrets: secrets))
        for (index, reply) in good.prefix(count).enumerated() {
            conversation.replies(reply)
            if index == 2 { conversation.establishTLS() }
        }
        return conversation
    }
}
