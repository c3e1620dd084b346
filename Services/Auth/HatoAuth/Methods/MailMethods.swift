import HatoModel
import HatoRPC
import HatoStorage

/// `auth.mail.…` and `auth.mailbox.…`: the mails that wait, and those in a folder.
struct MailMethods: AuthMethods {
    let service: AuthService

    private static let (pageMax, mailboxPageMax) = (1_000, 100)

    func add(to router: inout RPCRouter) {
        handle(Auth.Mail.List.self, in: &router) { methods, request, _ in try await methods.mails(request) }
        handle(Auth.Mail.Replay.self, in: &router) { methods, request, _ in try await methods.replay(request) }
        handle(Auth.Mail.Drop.self, in: &router) { methods, request, _ in try await methods.drop(request) }
        handle(Auth.Mailbox.List.self, in: &router) { methods, request, _ in try await methods.mailbox(request) }
    }

    func mails(_ request: Auth.Mail.List) async throws -> Auth.Mail.List.Result {
        let limit = try limit(request.limit, max: Self.pageMax)
        let after = try request.after.map { name throws(AuthError) in
            guard let id = MailRecord.id(named: name) else { throw Self.wrongPage }
            return id
        }
        return try await store.read { rows in
            let mails = try MailRows.page(after: after, request.state, limit: limit + 1, in: rows)
            return Auth.Mail.List.Result(
                mails: mails.prefix(limit).map(\.entry),
                after: mails.count > limit ? mails[limit - 1].name : nil)
        }
    }

    func replay(_ request: Auth.Mail.Replay) async throws -> Auth.Mail.Changed {
        let choice = try choice(request.mail, all: request.all)
        let changed = try await change(choice) { [configuration] mail, now, queue, rows in
            guard mail.record.nextAt == nil, let code = mail.code else { return false }
            let hasLink = configuration.links.hasLink(
                continueUrl: mail.record.continueUrl, domains: configuration.continueDomains)
            let end = mail.record.end(with: code, hasLink: hasLink)
            guard now < end else { return false }
            var again = mail.record
            (again.attempts, again.nextAt, again.error) = (0, now, nil)
            again.until = min(end, now + MailRetryPolicy.tryFor)
            queue.replace(mail.record, with: again, in: rows)
            return true
        }
        service.mail?.wake()
        return changed
    }

    func drop(_ request: Auth.Mail.Drop) async throws -> Auth.Mail.Changed {
        let choice = try choice(request.mail, all: request.all)
        return try await change(choice) { mail, _, queue, rows in
            queue.delete(mail.record, in: rows)
            return true
        }
    }

    func mailbox(_ request: Auth.Mailbox.List) async throws -> Auth.Mailbox.List.Result {
        guard let folder = service.mail?.folder else { throw AuthError.mailboxNotConfigured }
        let limit = try limit(request.limit, max: Self.mailboxPageMax)
        let address = try mailboxAddress(request.to)
        // Reading files may block.
        return try await store.read { _ in
            let mails = try folder.mails(to: address, after: request.after, limit: limit + 1)
            return Auth.Mailbox.List.Result(
                mails: mails.prefix(limit).map(\.mail), after: mails.count > limit ? mails[limit - 1].name : nil)
        }
    }

    // MARK: Steps

    private enum Choice: Sendable {
        case one([UInt8])
        case oldestDead
    }

    /// A mail, and its code if that is still there.
    private struct Chosen {
        var record: MailRecord
        var code: CodeRecord?
    }

    private typealias Change =
        @Sendable (Chosen, _ now: Int64, inout MailQueueChange, AuthTransaction) -> Bool

    private func change(_ choice: Choice, _ body: @escaping Change) async throws -> Auth.Mail.Changed {
        switch choice {
        case .one(let id):
            let changed = try await service.write { [self] rows in
                guard let mail = try MailRows.find(id, in: rows) else { throw AuthError.mailNotFound }
                return try change([mail], countMax: 1, body, in: rows)
            }.outcome
            return Auth.Mail.Changed(mails: changed)
        case .oldestDead: return Auth.Mail.Changed(mails: try await changeOldestDead(body))
        }
    }

    /// One page per transaction: the oldest may be of no use any more, and the next ones are.
    private func changeOldestDead(_ body: @escaping Change) async throws -> Int {
        var (changed, last): (Int, [UInt8]?) = (0, nil)
        repeat {
            let page = try await service.write { [self, changed, last] rows in
                let mails = try MailRows.dead(after: last, limit: Self.pageMax, in: rows)
                let count = try change(mails, countMax: Self.pageMax - changed, body, in: rows)
                return (count: count, last: mails.last?.id)
            }.outcome
            (changed, last) = (changed + page.count, page.last)
        } while last != nil && changed < Self.pageMax
        return changed
    }

    /// Reads first and writes after.
    private func change(
        _ mails: [MailRecord], countMax: Int, _ body: Change, in rows: AuthTransaction
    ) throws -> Int {
        var queue = try MailQueueChange(configuration.limits, in: rows)
        let chosen = try mails.map { Chosen(record: $0, code: try CodeRows.find($0.code, in: rows)) }
        let now = environment.now()
        var count = 0
        for mail in chosen where count < countMax {
            if body(mail, now, &queue, rows) { count += 1 }
        }
        if count > 0 { queue.finish(in: rows) }
        return count
    }

    private func choice(_ mail: String?, all: Bool?) throws -> Choice {
        guard (mail != nil) != (all == true) else {
            throw RPCError.invalidParams("mail", #"Give exactly one of mail and all: true, e.g. {"all": true}"#)
        }
        guard let mail else { return .oldestDead }
        guard let id = MailRecord.id(named: mail) else { throw AuthError.mailNotFound }
        return .one(id)
    }

    private func mailboxAddress(_ text: String?) throws(AuthError) -> String? {
        guard let text else { return nil }
        do { return try AccountFormPolicy(configuration, takesStored: true).email(text) } catch {
            throw .invalidFields([FieldProblem("to", error.reason, error.message)])
        }
    }

    private func limit(_ limit: Int?, max limitMax: Int) throws(AuthError) -> Int {
        let limit = limit ?? limitMax
        guard (1...limitMax).contains(limit) else {
            throw .invalidFields([
                FieldProblem("limit", "INVALID_PAGE_SELECTION", "The limit should be from 1 to \(limitMax)")
            ])
        }
        return limit
    }

    private static let wrongPage = AuthError.invalidFields([
        FieldProblem(
            "after", "INVALID_PAGE_SELECTION", "The page should begin after a mail: the `after` of the previous page")
    ])
}
