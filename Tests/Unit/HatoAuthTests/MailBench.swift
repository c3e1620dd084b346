import HatoMail
import HatoModel
import HatoStorage
import Synchronization
import Testing

@testable import HatoAuth

/// Keeps the mails that it gets, and takes them as a test says.
final class MailCatcher: MailDestination {
    private struct State {
        var mails: [ComposedMail] = []
        var outcome = MailOutcome.accepted
    }

    private let state = Mutex(State())

    func send(_ mail: ComposedMail) async -> MailOutcome {
        state.withLock { state in
            state.mails.append(mail)
            return state.outcome
        }
    }

    func close() async {}

    /// Every attempt.
    var composed: [ComposedMail] { state.withLock { $0.mails } }
    var mails: [Auth.Mailbox.Mail] { composed.map(\.entry) }
    func outcome(_ outcome: MailOutcome) { state.withLock { $0.outcome = outcome } }

    /// Of a server that accepts no mail for now, or not this one.
    static func failure(_ code: Int? = 450, concernsServer: Bool = false) -> MailFailure {
        MailFailure(
            step: concernsServer ? .connection : .recipient, code: code, text: "not now", concernsServer: concernsServer
        )
    }
}

extension AuthBench {
    static let mailSettings = [
        "mail-url": "smtp://localhost:1", "mail-tls": "none", "mail-from": "サザエのチャット <chat@example.com>",
    ]

    /// A service that sends its mails to `mails`.
    static func mailing(
        to mails: MailCatcher, since earlier: AuthBench? = nil, _ change: (inout AuthConfiguration) -> Void = { _ in }
    ) async throws -> AuthBench {
        try await open(since: earlier, mails: mails) { configuration in
            do { _ = try configuration.setMail { mailSettings[$0] } } catch { Issue.record(error) }
            change(&configuration)
        }
    }

    @discardableResult
    func request(
        _ type: Auth.CodeType, _ email: String? = nil, by origin: CallOrigin = CallOrigin(),
        _ change: (inout Auth.Code.Request) -> Void = { _ in }
    ) async throws -> Auth.Code.Request.Result {
        var request = Auth.Code.Request(type: type)
        request.email = email
        change(&request)
        return try await service.codes.request(request, origin)
    }

    @discardableResult
    func apply(_ code: String, _ email: String? = nil, newPassword: String? = nil) async throws -> Auth.Code.Found {
        var request = Auth.Code.Apply(code: code, email: email)
        request.newPassword = newPassword
        return try await service.codes.apply(request, CallOrigin())
    }

    @discardableResult
    func check(_ code: String, _ email: String? = nil) async throws -> Auth.Code.Found {
        try await service.codes.check(Auth.Code.Check(code: code, email: email), CallOrigin())
    }

    @discardableResult
    func signIn(
        code: String, _ email: String = "masuo@example.com", _ change: (inout Auth.SignInWithCode) -> Void = { _ in }
    ) async throws -> Auth.Session {
        var request = Auth.SignInWithCode(email: email, code: code)
        change(&request)
        return try await service.codeSignIns.signIn(request, CallOrigin())
    }

    /// A code that an administrator gets without a mail.
    func code(
        _ type: Auth.CodeType, _ email: String = "masuo@example.com",
        _ change: (inout Auth.Code.Request) -> Void = { _ in }
    ) async throws -> Auth.Code.Request.Result {
        try await request(type, email, by: CallOrigin(caller: .administrator)) {
            $0.returnCode = true
            change(&$0)
        }
    }

    /// Sends what is due.
    @discardableResult
    func sendMails() async throws -> Int64? { try await service.mail?.sendDue() }

    func queue(_ state: Auth.Mail.State? = nil) async throws -> [Auth.Mail.Entry] {
        var request = Auth.Mail.List()
        request.state = state
        return try await service.mails.mails(request).mails
    }

    func rows() async throws -> [[UInt8]: [UInt8]] {
        try await store.read { rows in
            var all: [[UInt8]: [UInt8]] = [:]
            try rows.rows(KeyRange(lower: [], upper: nil)) { key, value in
                all[key] = value
                return true
            }
            return all
        }
    }
}

extension AuthService {
    var codes: CodeMethods { CodeMethods(service: self) }
    var codeSignIns: SignInWithCodeMethod { SignInWithCodeMethod(service: self) }
    var mails: MailMethods { MailMethods(service: self) }
}
