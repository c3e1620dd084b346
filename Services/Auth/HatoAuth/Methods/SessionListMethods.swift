import HatoModel
import HatoRPC
import HatoStorage

/// `auth.sessions.…`: the sessions of an account.
struct SessionListMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Sessions.List.self, in: &router) { try await $0.sessions($1, $2) }
        handle(Auth.Sessions.End.self, in: &router) { try await $0.end($1, $2) }
        handle(Auth.Sessions.Fork.self, in: &router) { try await $0.fork($1, $2) }
    }

    func sessions(_ request: Auth.Sessions.List, _ origin: CallOrigin) async throws -> Auth.Sessions.List.Result {
        let owner = try owner(request.uid, origin)
        let page = try SessionPage(request)
        return try await store.read { [service] rows in
            let uid = try owner.check(in: rows)
            let policy = service.configuration.refresh
            let now = service.environment.now()
            let entries = try SessionRows.all(of: uid, in: rows)
                .filter { !$0.rotation.isExpired(now: now, policy: policy) }
                .map { record in
                    var entry = Auth.Sessions.Entry(
                        session: service.name(of: record), provider: record.provider.description,
                        createdAt: record.rotation.createdAt, usedAt: record.rotation.rotatedAt)
                    entry.label = record.label
                    entry.address = record.address
                    entry.current = entry.session == owner.session
                    return entry
                }
            return page.result(of: entries)
        }
    }

    func end(_ request: Auth.Sessions.End, _ origin: CallOrigin) async throws -> Empty {
        guard (request.session != nil) != (request.others == true) else {
            throw RPCError.invalidParams(
                "session", #"Give exactly one of session and others: true, e.g. {"others": true}"#)
        }
        let owner = try owner(request.uid, origin)
        if request.others == true, case .caller(let user) = owner, user.session == nil {
            throw RPCError.invalidParams(
                "others",
                #"The call names no session that stays; refresh its token, or end one, e.g. {"session": "Yk3v…"}"#)
        }
        _ = try await service.write { [service] rows in
            let uid = try owner.check(in: rows)
            let ids = try SessionRows.ids(of: uid, in: rows)
            if case .caller(let user) = owner { _ = try service.ownSession(of: user, among: ids) }
            let meant = ids.filter { id in
                let name = SessionName.text(id, key: service.refreshKey)
                return request.session.map { $0 == name } ?? (name != owner.session)
            }
            let ended = try request.session == nil ? meant : SessionRows.withForks(meant, of: uid, in: rows)
            for id in ended { SessionRows.delete(id, of: uid, in: rows) }
        }
        return Empty()
    }

    /// Another session of the same sign-in: its provider and the time of the sign-in stay.
    func fork(_ request: Auth.Sessions.Fork, _ origin: CallOrigin) async throws -> Auth.Session {
        let newSession = try service.newSession(request.label, origin)
        try attempts.admit(.refresh, from: origin.address)
        guard let token = RefreshToken(request.refreshToken) else { throw AuthError.invalidRefreshToken }
        let policy = configuration.refresh
        // By user, too: a token forks any number of times. One that may not fork takes nothing of its owner.
        let held = try await store.read { try SessionRows.find(token.sessionID, in: $0) }
        if let held, held.rotation.mayFork(token.hash, now: environment.now(), policy: policy) {
            try attempts.admit(.profileChange, of: held.uid, from: origin.address)
        }
        let forks = ForkPolicy(
            sessionsMax: configuration.limits.sessionsPerAccountMax, forksMax: configuration.limits.forksPerSignInMax,
            refresh: policy)
        let granted = try await service.write { [environment] rows in
            let now = environment.now()
            guard let held = try SessionRows.find(token.sessionID, in: rows) else { throw AuthError.sessionOver }
            guard held.rotation.mayFork(token.hash, now: now, policy: policy) else {
                throw AuthError.invalidRefreshToken
            }
            guard var account = try AccountRows.find(held.uid, in: rows) else { throw AuthError.userNotFound }
            guard !account.disabled else { throw AuthError.userDisabled }
            guard !held.rotation.isExpired(now: now, policy: policy),
                held.rotation.createdAt / 1000 >= account.validSince
            else { throw AuthError.sessionOver }
            let others = try SessionRows.all(of: account.uid, in: rows)
            guard let ended = forks.ended(forking: held, among: others, now: now) else {
                throw AuthError.tooManySessions
            }
            var record = newSession.record(of: account, now: now)
            (record.provider, record.authTime, record.forkedFrom) = (held.provider, held.authTime, held.family)
            record.claims = held.claims
            // Its end is that of the sign-in.
            record.rotation = RefreshRotationStateMachine(
                currentHash: newSession.token.hash, createdAt: held.rotation.createdAt, rotatedAt: now)
            let before = account
            account.lastRefreshAt = now
            AccountRows.put(account, replacing: before, in: rows)
            for id in ended { SessionRows.delete(id, of: account.uid, in: rows) }
            SessionRows.put(record, in: rows)
            rows.audit(.sessionForked, of: record)
            return AuthService.Granted(account: account, record: record, at: now)
        }.outcome
        return try service.session(granted, newSession.token)
    }

    // MARK: Owners

    /// Whose sessions a call is about.
    private enum Owner {
        case caller(Caller.User)
        /// For an administrator.
        case account(String)

        /// The `SessionName` of the caller's own session.
        var session: String? {
            switch self {
            case .caller(let user): user.session
            case .account: nil
            }
        }

        /// The uid. Throws `AuthError` when the account is not there, or the caller may not use it.
        func check(in rows: some StoreReading) throws -> String {
            switch self {
            case .caller(let user): return try AccountChecks.ownAccount(user, in: rows).uid
            case .account(let uid):
                guard try AccountRows.find(uid, in: rows) != nil else { throw AuthError.userNotFound }
                return uid
            }
        }
    }

    private func owner(_ uid: String?, _ origin: CallOrigin) throws -> Owner {
        switch (origin.caller, uid) {
        case (.administrator, let uid?): return .account(uid)
        case (.administrator, nil):
            throw RPCError.invalidParams(
                "uid", #"Administrators name the user, e.g. {"uid": "q3Vd0lYxkTg7Zb1mNc5RwEaHs2Uf"}"#)
        case (_, let uid?):
            let user = try origin.user()
            guard uid == user.uid else { throw RPCError.permissionDenied("Only administrators may name another user") }
            return .caller(user)
        case (_, nil): return .caller(try origin.user())
        }
    }
}

/// A page of the sessions of an account: the newest sign-ins first, since a session that is used meanwhile must not
/// move from a later page to an earlier one.
private struct SessionPage: Sendable {
    private static let (sizeMax, sizeDefault) = (1_000, 100)
    private static let afterBytesMax = 128

    private let limit: Int
    /// The last session of the previous page; nil: the first page.
    private let after: (createdAt: Int64, session: String)?

    /// Throws `AuthError.invalidFields`.
    init(_ request: Auth.Sessions.List) throws(AuthError) {
        limit = request.limit ?? Self.sizeDefault
        guard (1...Self.sizeMax).contains(limit) else { throw Self.wrong("limit", "from 1 to \(Self.sizeMax)") }
        guard let text = request.after else {
            after = nil
            return
        }
        let parts = text.split(separator: "-", maxSplits: 1)
        guard text.utf8.count <= Self.afterBytesMax, parts.count == 2, let createdAt = Int64(parts[0]) else {
            throw Self.wrong("after", "the `after` of the previous page")
        }
        after = (createdAt, String(parts[1]))
    }

    func result(of sessions: [Auth.Sessions.Entry]) -> Auth.Sessions.List.Result {
        var rest = sessions.sorted { ($0.createdAt, $0.session) > ($1.createdAt, $1.session) }
        if let after { rest.removeAll { ($0.createdAt, $0.session) >= after } }
        let page = rest.prefix(limit)
        let last = rest.count > limit ? page.last : nil
        return Auth.Sessions.List.Result(
            sessions: page.sorted { ($0.usedAt, $0.session) > ($1.usedAt, $1.session) },
            after: last.map { "\($0.createdAt)-\($0.session)" })
    }

    private static func wrong(_ parameter: String, _ right: String) -> AuthError {
        .invalidFields([FieldProblem(parameter, "INVALID_PAGE_SELECTION", "\(parameter) should be \(right)")])
    }
}
