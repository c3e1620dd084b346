import HatoModel
import HatoRPC
import HatoStorage
import Logging

/// `auth.refresh` and `auth.signOut`.
struct SessionMethods: AuthMethods {
    let service: AuthService

    func add(to router: inout RPCRouter) {
        handle(Auth.Refresh.self, in: &router) { try await $0.refresh($1, $2) }
        handle(Auth.SignOut.self, in: &router) { methods, request, _ in try await methods.signOut(request) }
    }

    /// The rotation is durable before the successor is sent. If the response is lost, the same token returns the same
    /// successor, or the newest one (`RefreshRotationStateMachine`).
    func refresh(_ request: Auth.Refresh, _ origin: CallOrigin) async throws -> Auth.Session {
        try attempts.admit(.refresh, from: origin.address)
        do {
            guard let token = RefreshToken(request.refreshToken) else { throw AuthError.invalidRefreshToken }
            let chain = token.chain(key: service.refreshKey)
            let network = (text: origin.address?.network, mark: NetworkMark(origin.address, key: service.refreshKey))
            let refreshed = try await service.write { [environment, policy = configuration.refresh] rows in
                let now = environment.now()
                return try Self.rotate(
                    Rotation(
                        sessionID: token.sessionID, chain: chain.map(\.hash), network: network, now: now,
                        policy: policy), in: rows)
            }.outcome
            return try result(refreshed, chain)
        } catch let error as AuthError {
            metrics.count(.refreshRefused)
            throw error
        }
    }

    /// Ends the session of a token that leads to the newest one, and what was forked from it; a missing session has
    /// ended already.
    func signOut(_ request: Auth.SignOut) async throws -> Empty {
        guard let token = RefreshToken(request.refreshToken) else { return Empty() }
        let chain = token.chain(key: service.refreshKey).map(\.hash)
        _ = try await service.write { rows in
            guard let session = try SessionRows.find(token.sessionID, in: rows), session.rotation.isReached(by: chain)
            else { return }
            for id in try SessionRows.withForks([session.id], of: session.uid, in: rows) {
                SessionRows.delete(id, of: session.uid, in: rows)
            }
        }
        return Empty()
    }

    // MARK: Rotation

    private struct Rotation: Sendable {
        var sessionID: [UInt8]
        /// The hashes of the presented token and of its successors.
        var chain: [[UInt8]]
        /// Of the client.
        var network: (text: String?, mark: NetworkMark)
        var now: Int64
        var policy: RefreshPolicy
    }

    /// The result of a transaction for a refresh token. The end of a session is an outcome, not an error, because it
    /// must be committed.
    private enum Refreshed: Sendable {
        /// The token that is so many steps after the presented one is the newest.
        case went(AuthService.Granted, steps: Int, AuthMetrics.Event)
        case refused(AuthError)
        case reused(uid: String)
    }

    private static func rotate(_ rotation: Rotation, in rows: AuthTransaction) throws -> Refreshed {
        // Revoked, signed out, or gone with its account: nothing is left to distinguish these. Firebase's clients sign
        // out on this reason as on that of an unknown user (spec auth §3).
        guard var session = try SessionRows.find(rotation.sessionID, in: rows) else { return .refused(.sessionOver) }
        guard let before = try AccountRows.find(session.uid, in: rows) else { return .refused(.userNotFound) }
        let action = session.rotation.tokenWasPresented(rotation.chain, now: rotation.now, policy: rotation.policy)
        switch action {
        case .endReused:
            // What was forked with a stolen token ends, too.
            let family = try SessionRows.all(of: session.uid, in: rows).filter { $0.family == session.family }
            for member in family { SessionRows.delete(member.id, of: member.uid, in: rows) }
            rows.audit(.refreshReused, of: session)
            return .reused(uid: session.uid)
        case .endExpired:
            SessionRows.delete(session.id, of: session.uid, in: rows)
            return .refused(.sessionOver)
        case .rotate, .repeatNewest, .repeatLate: break
        }
        guard !before.disabled else { return .refused(.userDisabled) }
        guard session.rotation.createdAt / 1000 >= before.validSince else { return .refused(.sessionOver) }
        session.address = rotation.network.text ?? session.address
        var granted = AuthService.Granted(account: before, record: session, at: rotation.now)
        switch action {
        case .repeatNewest(let steps):
            granted.account.lastRefreshAt = rotation.now
            AccountRows.put(granted.account, replacing: before, in: rows)
            return .went(granted, steps: steps, .refreshRepeated)
        case .repeatLate:
            granted.account.lastRefreshAt = rotation.now
            AccountRows.put(granted.account, replacing: before, in: rows)
            SessionRows.put(session, in: rows)
            rows.audit(.refreshLate, of: session)
            return .went(granted, steps: 1, .refreshLate)
        case .rotate, .endReused, .endExpired:
            granted.account.lastRefreshAt = rotation.now
            granted.account.networks = rotation.network.mark.added(to: before.networks)
            AccountRows.put(granted.account, replacing: before, in: rows)
            SessionRows.put(session, in: rows)
            return .went(granted, steps: 1, .refreshed)
        }
    }

    private func result(_ refreshed: Refreshed, _ chain: [RefreshToken]) throws -> Auth.Session {
        switch refreshed {
        case .went(let granted, let steps, let event):
            guard chain.indices.contains(steps) else { throw AuthError.invalidRefreshToken }
            metrics.count(event)
            return try service.session(granted, chain[steps])
        case .refused(let error):
            throw error
        case .reused(let uid):
            metrics.count(.refreshTokenReused)
            environment.notices.notice(
                .reusedRefreshToken, "a used refresh token came again; its session was ended", ["uid": "\(uid)"],
                level: .warning)
            throw AuthError.invalidRefreshToken
        }
    }
}
