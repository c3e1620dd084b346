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
        let changed = try await change(choice) { mail, now, queue, rows in
            guard mail.nextAt == nil, now < mail.until, mail.isOfUse else { return false }
            var again = mail.record
            (again.attempts, again.nextAt, again.error) = (0, now, nil)
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

    /// A mail, and whether its code is still there.
    @dynamicMemberLookup
    private struct Chosen {
        var record: MailRecord
        var isOfUse: Bool

        subscript<Value>(dynamicMember path: KeyPath<MailRecord, Value>) -> Value { record[keyPath: path] }
    }

    private func change(
        _ choice: Choice,
        _ body: @escaping @Sendable (Chosen, _ now: Int64, inout MailQueueChange, AuthTransaction) -> Bool
    ) async throws -> Auth.Mail.Changed {
        let changed = try await service.write { [environment, limits = configuration.limits] rows in
            var queue = try MailQueueChange(limits, in: rows)
            let mails =
                switch choice {
                case .one(let id): try MailRows.find(id, in: rows).map { [$0] } ?? []
                case .oldestDead: try MailRows.dead(after: nil, limit: Self.pageMax, in: rows)
                }
            if mails.isEmpty, case .one = choice { throw AuthError.mailNotFound }
            let chosen = try mails.map { Chosen(record: $0, isOfUse: try CodeRows.find($0.code, in: rows) != nil) }
            let now = environment.now()
            let count = chosen.count { body($0, now, &queue, rows) }
            if count > 0 { queue.finish(in: rows) }
            return count
        }.outcome
        return Auth.Mail.Changed(mails: changed)
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
        do { return try AccountFormPolicy(configuration).email(text) } catch {
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
