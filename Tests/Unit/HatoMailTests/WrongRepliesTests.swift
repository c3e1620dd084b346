import HatoTesting
import Testing

@testable import HatoMail

/// Servers that refuse, break off, send nonsense or nothing, at each step.
struct WrongRepliesTests {
    private static let steps: [MailFailure.Step] = [
        .greeting, .hello, .startTLS, .hello, .authentication, .sender, .recipient, .data, .content,
    ]

    @Test(arguments: steps.indices)
    func refusalsBeforeTheRecipientAreNoReasonToDropMessages(step: Int) throws {
        for (reply, isPermanent) in [("450 later", false), ("550 no", true), ("530 sign in first", false)] {
            var it = try Conversation.atMail(upTo: step)
            it.replies(reply)
            #expect(it.outcomes.count == 1 && it.failure?.step == Self.steps[step])
            #expect(it.failure?.code == Int(reply.prefix(3)))
            #expect(it.outcome?.isPermanent == (isPermanent && step > 5), "\(step) \(reply)")
            #expect(it.failure?.concernsServer == (step <= 5 || reply.hasPrefix("530")))
            // The connection is kept when it is about the message.
            #expect(it.isClosed == (step < 5))
            #expect(it.last == (step < 5 ? "QUIT\r\n" : "RSET\r\n"))
        }
    }

    @Test(arguments: steps.indices)
    func lostConnectionsAreTemporaryAtEachStep(step: Int) throws {
        let ends = [
            ("421 shutting down", 421, "shutting down"), ("299", nil, "the server closed the connection"),
            ("", nil, "no reply in time"),
            ("HTTP/1.1 400 Bad Request", nil, "the server sent what is no reply of SMTP"),
            ("666 hell", nil, "the server sent what is no reply of SMTP"),
            ("250?", nil, "the server sent what is no reply of SMTP"),
            ("250-a\r\n251 b", nil, "the server sent what is no reply of SMTP"),
            ("399 what", nil, "the server sent the reply 399, which is none to this command"),
        ]
        for (end, code, text) in ends {
            var it = try Conversation.atMail(upTo: step)
            switch end {
            case "299": it.close()
            case "": it.passDeadline()
            default: it.replies(end)
            }
            let words = code != nil && step == 4 ? "the server accepts no sign-in for now" : text
            #expect(it.failure?.text == words, "\(step) \(end)")
            #expect(it.outcome?.isTemporary == true && it.outcomes.count == 1 && it.isClosed && it.deadline == nil)
            #expect(it.failure?.code == code && it.failure?.step == Self.steps[step])
            #expect(it.failure?.concernsServer == true)
        }
    }

    @Test(arguments: steps.indices)
    func endlessRepliesAreBounded(step: Int) throws {
        var line = try Conversation.atMail(upTo: step)
        for _ in 0..<512 where !line.isClosed { line.receive("2") }
        #expect(line.isClosed && line.failure?.text == "the server sent a line of more than 512 bytes")
        var whole = try Conversation.atMail(upTo: step)
        whole.receive("250 " + String(repeating: "x", count: 507) + "\r\n")
        #expect(whole.failure?.text == "the server sent a line of more than 512 bytes")
        var longest = try Conversation.atMail(upTo: step)
        longest.receive("450 " + String(repeating: "x", count: 506) + "\r\n")
        #expect(longest.failure?.code == 450)
        var lines = try Conversation.atMail(upTo: step)
        for _ in 0...100 where !lines.isClosed { lines.receive("250-more\r\n") }
        #expect(lines.isClosed && lines.failure?.text == "the server sent a reply of more than 100 lines")
    }

    @Test func handshakeHasADeadlineAndAnEnd() throws {
        var slow = try Conversation.begun(.implicitTLS)
        slow.passDeadline()
        #expect(slow.failure?.description == "TLS: no handshake in time" && slow.isClosed)
        var failed = try Conversation.begun()
        failed.replies("220 ready", Mails.offers, "220 go")
        failed.run(failed.machine.closed("the server's certificate is not for this host"))
        #expect(failed.failure?.description == "TLS: the server's certificate is not for this host")
        #expect(failed.outcome?.isTemporary == true)
        var unconnected = Conversation()
        unconnected.submit(try Mails.message())
        unconnected.run(unconnected.machine.closed("connection refused"))
        #expect(unconnected.failure?.description == "connection: connection refused")
    }

    // MARK: Secrets

    @Test(arguments: steps.indices)
    func noFailureRepeatsASecret(step: Int) throws {
        let credentials = try Mails.credentials
        let secrets = credentials.secrets + ["123456"]
        for secret in secrets {
            for code in [421, 450, 550] {
                var it = try Conversation.atMail(upTo: step, secrets: ["123456"])
                it.replies("\(code) you sent \(secret)")
                let failure = try #require(it.failure)
                #expect(!"\(failure)".contains(secret) && failure.code == code)
            }
        }
        #expect(!"\(credentials)\(String(reflecting: credentials))".contains("fly"))
        var dumped = ""
        dump(try Conversation.atMail().machine, to: &dumped)
        #expect(!dumped.contains("fly me home"))
    }

    @Test func refusedPasswordIsNamedWithTheCodeOfTheServer() throws {
        var it = try Conversation.atMail(upTo: 4)
        it.replies("535 5.7.8 Error: authentication failed: fly me home")
        #expect(it.failure?.description == "AUTH: 535 5.7.8 the server refused the user name or the password")
    }

    @Test func textOfAReplyIsBoundedAndOfOneLine() throws {
        var it = try Conversation.atMail(upTo: 6)
        let line = String(repeating: "鳩", count: 150)
        it.replies("550-\(line)", "550-a\u{1B}[2J\tb", "550 \(line)\(line.prefix(10))")
        let text = try #require(it.failure?.text)
        #expect(text.count == 301 && text.hasSuffix("…") && text.contains(" a [2J b "))
    }

    // MARK: Everything

    /// Whatever happens in whatever order: a message ends once, secrets need TLS, and each wait has a deadline. Every
    /// situation that three messages on a connection can lead to is reached.
    @Test func everyOrderOfEventsKeepsTheGuarantees() throws {
        var limits = SMTPLimits()
        limits.messagesPerConnectionMax = 2
        limits.replyLinesMax = 6
        for security in [MailSecurity.startTLS, .implicitTLS, .none] {
            var first = Conversation(security, credentials: try Mails.credentials, limits: limits)
            first.submit(try Mails.message())
            var waiting = [Situation(conversation: first, security: security, submitted: 1)]
            var known: Set<Situation.Key> = []
            while let situation = waiting.popLast() {
                guard known.insert(situation.key).inserted, !situation.conversation.isClosed else { continue }
                for event in Self.events {
                    guard let next = try situation.after(event) else { continue }
                    check(situation.conversation, next)
                    waiting.append(next)
                }
            }
            print("\(known.count) situations")
            #expect(known.count > (security == .none ? 5 : 50))
        }
    }

    private static let events = [
        "submit", "connected", "tls", "deadline", "closed", "stopped", "220 ready", Mails.offers, Mails.offersLess,
        "235 in", "250 ok", "334 ", "354 go", "421 bye", "450 later", "550 no", "x", "250-more", "250 ok\r\n250 ok",
        "220 go\r\n" + Mails.offers,
    ]

    private struct Situation {
        struct Key: Hashable {
            var machine: SMTPStateMachine
            var isEncrypted: Bool
            var ended: Int
            var last: String?
        }

        var conversation: Conversation
        var security: MailSecurity
        var submitted: Int
        var isEncrypted = false

        /// Messages that ended.
        var ended: Int { conversation.outcomes.count + (conversation.isUnsent ? 1 : 0) }

        var key: Key {
            Key(machine: conversation.machine, isEncrypted: isEncrypted, ended: ended, last: conversation.last)
        }

        /// Nil where the event cannot happen.
        func after(_ event: String) throws -> Situation? {
            var next = self
            switch event {
            case "submit":
                guard submitted < 3, conversation.machine.takesMessage else { return nil }
                next.conversation.submit(try Mails.message())
                next.submitted += 1
            case "connected": next.conversation.connect()
            case "tls":
                guard conversation.hasBegunTLS || security == .implicitTLS, !isEncrypted else { return nil }
                next.conversation.establishTLS()
                next.isEncrypted = next.conversation.deadline != conversation.deadline
            case "deadline": next.conversation.passDeadline()
            case "closed": next.conversation.close()
            case "stopped": next.conversation.run(next.conversation.machine.stopped("stopped"))
            default: next.conversation.replies(event)
            }
            return next
        }
    }

    private func check(_ before: Conversation, _ next: Situation) {
        let it = next.conversation
        let new = it.sent.dropFirst(before.sent.count).joined()
        if !next.isEncrypted {
            #expect(!new.contains("AUTH") && !new.contains("Zmx5IG1lIGhvbWU="))
            if next.security != .none { #expect(!new.contains("MAIL") && !new.contains("Subject")) }
        }
        if new.contains("Subject") { #expect(before.last == "DATA\r\n") }
        let underWay = next.submitted - next.ended
        if it.isClosed {
            #expect(underWay == 0 && it.deadline == nil)
        } else {
            #expect(underWay == 0 || underWay == 1)
            #expect(it.deadline != nil || !before.isConnected && !it.isConnected)
        }
    }

    @Test func damagedRepliesNeverTrapAndEndTheMessageOnce() {
        let failures = FuzzInputs.failures(1_000) { random in
            var it = try Conversation.begun(credentials: Mails.credentials)
            for (index, reply) in Conversation.good.enumerated() {
                var bytes = Array((reply + "\r\n").utf8)
                if random.once(in: 4) {
                    random.mutate(&bytes, inserting: [Array("\r\n".utf8), Array("421 x\r\n".utf8), [0xFF], [0]])
                }
                while !bytes.isEmpty {
                    let part = 1 + random.below(bytes.count)
                    it.run(it.machine.received(bytes.prefix(part)))
                    bytes.removeFirst(part)
                }
                if index == 2, it.hasBegunTLS { it.establishTLS() }
            }
            it.close()
            let count = it.outcomes.count + (it.isUnsent ? 1 : 0)
            return count == 1 && it.isClosed ? nil : "\(count) outcomes"
        }
        #expect(failures.isEmpty, "\(failures)")
    }
}
