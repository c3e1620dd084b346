import Foundation
import HatoTesting
import Synchronization
import TestCertificates
import Testing

@testable import HatoMail

/// The client against a server that behaves as a test says.
@Suite(.timeLimit(.minutes(10)))
struct ClientTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates(TestCertificates.server.merging(Self.others) { $1 }) }

    /// One for another name and the address that is connected to, and one for another name alone.
    private static let others: [String: [TestCertificates.Subject]] = [
        "address": [.dns("mail.example"), .address(127, 0, 0, 1)], "other": [.dns("mail.example")],
    ]

    private func client(
        _ server: ScriptedServer, host: String = "localhost", user: String? = "hato@example.com",
        tls: SMTPConfiguration.TLS = .required, prepare: (inout SMTPLimits) -> Void = { _ in }
    ) throws -> SMTPClient {
        let scheme = server.isImplicit ? "smtps" : "smtp"
        let url = try MailURL("\(scheme)://\(user.map { $0 + "@" } ?? "")\(host):\(server.port)")
        var configuration = try SMTPConfiguration(
            url: url, password: user == nil ? nil : "fly me home", tls: tls,
            authorityFile: certificates.path("ca.pem"))
        prepare(&configuration.limits)
        return try SMTPClient(configuration)
    }

    @Test(arguments: ["localhost", "127.0.0.1"], [false, true])
    func messageArrivesOverTLS(host: String, isImplicit: Bool) async throws {
        let server = try await ScriptedServer([:], certificates, isImplicit: isImplicit)
        let client = try client(server, host: host)
        let message = try Mails.message(text: ".\nコード: 123456\n", html: "<p>.</p>")
        #expect(await client.send(message) == .accepted)
        let received = server.received
        #expect(received.messages == [SMTPEnvelope(message).content])
        #expect(received.commands.contains("EHLO [127.0.0.1]") && received.commands.contains("DATA"))
        #expect(received.commands.filter { $0.hasPrefix("AUTH PLAIN ") }.count == 1)
        await client.close()
        try await eventually("the connection is closed") { server.received.open == 0 }
        #expect(server.received.commands.last == "QUIT")
        await server.stop()
    }

    @Test func messageInClearGoesOnlyToThisMachine() async throws {
        let server = try await ScriptedServer([:], certificates, certificate: nil)
        let client = try client(server, user: nil, tls: .none)
        #expect(await client.send(try Mails.message()) == .accepted)
        #expect(server.received.commands.allSatisfy { !$0.hasPrefix("AUTH") && $0 != "STARTTLS" })
        await server.stop()
    }

    @Test(arguments: [false, true])
    func checkSignsInAndSendsNothing(isImplicit: Bool) async throws {
        let server = try await ScriptedServer([:], certificates, isImplicit: isImplicit)
        let sender = try MailAddress("chat@example.com", field: "from")
        var tried = try client(server)
        #expect(await tried.problem(of: sender) == nil)
        await tried.close()
        try await eventually("the connection is closed") { server.received.open == 0 }
        let commands = server.received.commands
        #expect(commands.contains { $0.hasPrefix("AUTH PLAIN ") } && commands.last == "QUIT")
        #expect(!commands.contains { $0.hasPrefix("MAIL") } && server.received.messages.isEmpty)
        server.change(.auth, .reply("535 5.7.8 no"))
        tried = try client(server)
        let problem = await tried.problem(of: sender)
        #expect(problem?.step == .authentication && problem?.code == 535 && problem?.concernsServer == true)
        await tried.close()
        await server.stop()
    }

    @Test func authoritiesMayBeGivenThemselves() async throws {
        let server = try await ScriptedServer([:], certificates)
        var configuration = try SMTPConfiguration(url: MailURL("smtp://localhost:\(server.port)"))
        configuration.authorities = Array(try String(contentsOfFile: certificates.path("ca.pem"), encoding: .utf8).utf8)
        let client = try SMTPClient(configuration)
        #expect(await client.send(try Mails.message()) == .accepted)
        await client.close()
        configuration.authorities = Array("none".utf8)
        let error = #expect(throws: MailFieldError.self) { _ = try SMTPClient(configuration) }
        #expect(error?.field == "mail-authority-file")
        await server.stop()
    }

    // MARK: TLS

    @Test(arguments: [false, true])
    func serverWithAWrongCertificateGetsNothing(isImplicit: Bool) async throws {
        let words = "TLS: the server's certificate is not for this host"
        for (certificate, host, problem) in [
            ("other", "localhost", words), ("other", "127.0.0.1", words), ("named", "127.0.0.1", words),
            ("address", "localhost", words), ("address", "127.0.0.1", nil), ("named", "localhost", nil),
        ] {
            let server = try await ScriptedServer([:], certificates, certificate: certificate, isImplicit: isImplicit)
            let outcome = try await client(server, host: host).send(try Mails.message())
            #expect(outcome.failure?.description == problem, "\(certificate) \(host)")
            #expect(outcome.failure?.concernsServer != false)
            if problem != nil {
                #expect(outcome.isTemporary && server.received.commands.allSatisfy { !$0.hasPrefix("AUTH") })
                #expect(server.received.messages.isEmpty)
            }
            await server.stop()
        }
    }

    @Test func serverOfAnotherAuthorityGetsNothing() async throws {
        let server = try await ScriptedServer([:], try TestCertificates())
        let outcome = try await client(server).send(try Mails.message())
        #expect(
            outcome.failure?.description
                == "TLS: the server's certificate has expired, or no authority trusted here has signed it")
        #expect(server.received.commands == ["EHLO [127.0.0.1]", "STARTTLS"])
        await server.stop()
    }

    @Test func serverWithoutTLSGetsNothing() async throws {
        let server = try await ScriptedServer([:], certificates, certificate: nil)
        let outcome = try await client(server).send(try Mails.message())
        #expect(outcome.failure?.step == .hello && outcome.isTemporary)
        #expect(outcome.failure?.text.contains("does not offer STARTTLS") == true)
        #expect(!server.received.commands.contains { $0.hasPrefix("AUTH") || $0.hasPrefix("MAIL") })
        await server.stop()
    }

    @Test func repliesInjectedInClearAreThrownAway() async throws {
        let injected = "220 go\r\n\(Mails.offers)\r\n235 welcome\r\n250 ok\r\n250 ok\r\n354 go on\r\n250 queued"
        let server = try await ScriptedServer([.startTLS: .reply(injected), .auth: .silence], certificates)
        let client = try client(server) { $0.replyTimeout = .seconds(5) }
        let outcome = await client.send(try Mails.message())
        #expect(outcome.failure?.description == "AUTH: no reply in time")
        #expect(!server.received.commands.contains { $0.hasPrefix("MAIL") })
        await server.stop()
    }

    @Test func fileOfAuthoritiesIsCheckedAtOnce() throws {
        for file in ["/no/such.pem", certificates.path("server.key")] {
            let url = try MailURL("smtp://mail.example.com")
            do {
                _ = try SMTPClient(try SMTPConfiguration(url: url, authorityFile: file))
                Issue.record("it is used")
            } catch {
                #expect(error.field == "mail-authority-file")
            }
        }
    }

    // MARK: Each step

    private static let steps = ScriptedServer.Step.allCases.filter { ![.rset, .quit].contains($0) }

    @Test(arguments: steps)
    func silenceEndsWithTheDeadlineOfItsStep(step: ScriptedServer.Step) async throws {
        let server = try await ScriptedServer([step: .silence], certificates)
        let client = try client(server) { limits in
            let short = Duration.milliseconds(100)
            switch step {
            case .greeting: limits.greetingTimeout = short
            case .handshake: limits.handshakeTimeout = short
            case .content: limits.contentTimeout = short
            default: limits.replyTimeout = .milliseconds(500)
            }
        }
        let outcome = await client.send(try Mails.message())
        let text = step == .handshake ? "no handshake in time" : "no reply in time"
        #expect(outcome.isTemporary && outcome.failure?.text == text, "\(outcome)")
        #expect(outcome.failure?.concernsServer == true)
        await server.stop()
    }

    @Test(arguments: steps)
    func lostConnectionIsATemporaryFailure(step: ScriptedServer.Step) async throws {
        for behaviour in [ScriptedServer.Behaviour.drop, .last("421 going down")] {
            let server = try await ScriptedServer([step: behaviour], certificates)
            let client = try client(server)
            let outcome = await client.send(try Mails.message())
            #expect(outcome.isTemporary && outcome.failure?.concernsServer == true, "\(step): \(outcome)")
            // The next message gets a connection of its own.
            server.change(step, nil)
            #expect(await client.send(try Mails.message()) == .accepted)
            #expect(server.received.connections == 2)
            await server.stop()
        }
    }

    @Test func portWithoutAServerIsATemporaryFailure() async throws {
        let server = try await ScriptedServer([:], certificates)
        let client = try client(server)
        await server.stop()
        let outcome = await client.send(try Mails.message())
        #expect(outcome.isTemporary && outcome.failure?.description == "connection: connection refused", "\(outcome)")
    }

    // MARK: One connection

    @Test func messagesShareAConnectionUpToItsLimit() async throws {
        let server = try await ScriptedServer([:], certificates)
        let client = try client(server) { $0.messagesPerConnectionMax = 5 }
        try await withThrowingTaskGroup { group in
            for _ in 0..<12 { group.addTask { await client.send(try Mails.message()) } }
            for try await outcome in group { #expect(outcome == .accepted) }
        }
        #expect(server.received.messages.count == 12 && server.received.connections == 3)
        try await eventually("full connections are closed") { server.received.open == 1 }
        await server.stop()
    }

    @Test func connectionThatIsNotUsedIsClosed() async throws {
        let server = try await ScriptedServer([:], certificates)
        let client = try client(server) { $0.keptFor = .milliseconds(50) }
        #expect(await client.send(try Mails.message()) == .accepted)
        try await eventually("the connection is closed") { server.received.open == 0 }
        #expect(server.received.commands.last == "QUIT")
        #expect(await client.send(try Mails.message()) == .accepted)
        #expect(server.received.connections == 2)
        await server.stop()
    }

    @Test func refusedMessageLeavesTheConnectionForTheNextOne() async throws {
        let server = try await ScriptedServer([.rcpt: .reply("550 5.1.1 no such user")], certificates)
        let client = try client(server)
        let outcome = await client.send(try Mails.message())
        #expect(outcome.isPermanent && outcome.failure?.description == "RCPT: 550 5.1.1 no such user")
        server.change(.rcpt, nil)
        #expect(await client.send(try Mails.message()) == .accepted)
        #expect(server.received.connections == 1 && server.received.commands.contains("RSET"))
        await server.stop()
    }

    /// The server ends the connection at the next message, before its content.
    @Test(arguments: [ScriptedServer.Step.mail, .rcpt, .data])
    func keptConnectionThatEndedIsReplaced(step: ScriptedServer.Step) async throws {
        for behaviour in [ScriptedServer.Behaviour.drop, .last("421 idle for too long")] {
            let server = try await ScriptedServer([:], certificates)
            let client = try client(server)
            #expect(await client.send(try Mails.message()) == .accepted)
            server.change(step, behaviour)
            async let outcome = client.send(try Mails.message())
            // Once: the second connection is not a kept one.
            #expect(try await outcome.failure?.concernsServer == true)
            #expect(server.received.connections == 2)
            server.change(step, nil)
            #expect(await client.send(try Mails.message()) == .accepted)
            #expect(server.received.messages.count == 2)
            await server.stop()
        }
    }

    @Test func keptConnectionThatTheServerClosedIsReplaced() async throws {
        let server = try await ScriptedServer([.content: .last("250 queued")], certificates)
        let client = try client(server)
        for count in 1...3 {
            #expect(await client.send(try Mails.message()) == .accepted)
            #expect(server.received.connections == count)
        }
        await server.stop()
    }

    @Test func failureBeforeMessagesFailsThoseThatWait() async throws {
        let server = try await ScriptedServer([.auth: .reply("535 5.7.8 no")], certificates)
        let client = try client(server)
        try await withThrowingTaskGroup { group in
            for _ in 0..<10 { group.addTask { await client.send(try Mails.message()) } }
            for try await outcome in group {
                #expect(outcome.isTemporary)
                #expect(
                    outcome.failure?.description == "AUTH: 535 5.7.8 the server refused the user name or the password")
            }
        }
        await server.stop()
    }

    @Test func messagesThatWaitAreBounded() async throws {
        let server = try await ScriptedServer([.greeting: .silence], certificates)
        let client = try client(server) { $0.waitingMax = 3 }
        let texts = Texts()
        let sendings = (0..<8).map { _ in
            Task {
                let outcome = await client.send(try Mails.message())
                texts.all.withLock { $0.append(outcome.failure?.text) }
            }
        }
        // One is being sent, three wait.
        try await eventually("four are refused") { texts.all.withLock { $0.count } == 4 }
        #expect(texts.all.withLock { Set($0) } == ["3 messages wait for the server already"])
        await client.close()
        for sending in sendings { try await sending.value }
        #expect(texts.all.withLock { $0.suffix(4) } == Array(repeating: "the client is closed", count: 4))
        await server.stop()
    }

    @Test func cancelledSendingFailsNoOther() async throws {
        let server = try await ScriptedServer([.greeting: .silence], certificates)
        let client = try client(server) { $0.waitingMax = 1 }
        let first = Task { await client.send(try Mails.message()) }
        try await eventually("the first is being sent") { server.received.open == 1 }
        let texts = Texts()
        let others = (0..<2).map { _ in
            Task {
                let outcome = await client.send(try Mails.message())
                texts.all.withLock { $0.append(outcome.failure?.text) }
            }
        }
        try await eventually("one waits, and the other one is refused") { texts.all.withLock { $0.count } == 1 }
        server.change(.greeting, nil)
        first.cancel()
        #expect(try await first.value.failure?.text == "its sender does not wait any more")
        for other in others { try await other.value }
        #expect(texts.all.withLock { $0 } == ["1 messages wait for the server already", nil])
        await server.stop()
    }

    @Test func cancelledAndClosedSendingsEnd() async throws {
        let server = try await ScriptedServer([.greeting: .silence], certificates)
        let client = try client(server)
        let first = Task { await client.send(try Mails.message()) }
        try await eventually("the first is being sent") { server.received.open == 1 }
        let second = Task { await client.send(try Mails.message()) }
        second.cancel()
        #expect(try await second.value.failure?.text == "its sender does not wait any more")
        first.cancel()
        #expect(try await first.value.failure?.text == "its sender does not wait any more")
        try await eventually("its connection is closed") { server.received.open == 0 }
        #expect(try await first.value.failure?.concernsServer == false)
        let third = Task { await client.send(try Mails.message()) }
        try await eventually("the third is being sent") { server.received.open == 1 }
        await client.close()
        #expect(try await third.value.failure?.text == "the client is closed")
        #expect(await client.send(try Mails.message()).failure?.text == "the client is closed")
        await server.stop()
    }
}

/// What failures say, in their order.
private final class Texts: Sendable {
    let all = Mutex<[String?]>([])
}
