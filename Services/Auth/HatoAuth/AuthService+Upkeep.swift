import HatoStorage
import Logging

extension AuthService {
    /// Periodic work of the service, until the task is cancelled: once an hour it deletes expired sessions, codes and
    /// used tokens, unused anonymous accounts, what is left of accounts deleted long ago, and the events that followers
    /// can no longer resume from, rotates the signing keys when that is due, and fetches the keys of providers that are
    /// a day old; once a minute it deletes the events that take too much
    /// room.
    public func run() async {
        var minute = 0
        while !Task.isCancelled {
            if minute.isMultiple(of: 60) { await keepUpOnce() } else { await keepRoom() }
            minute = (minute + 1) % 60
            try? await Task.sleep(for: .seconds(60))
        }
    }

    /// Deletes the older half of the events while they take too much room.
    func keepRoom() async {
        do {
            try await store.read { [store, bytesMax = configuration.limits.eventsBytesMax] _ in
                while store.keptCommits.bytes > bytesMax, let oldest = store.keptCommits.oldest, oldest < store.version
                {
                    try store.compactCommits(through: oldest + (store.version - oldest) / 2)
                }
            }
        } catch {
            environment.logger.warning("events that take too much room stay", metadata: ["error": "\(error)"])
        }
    }

    func keepUpOnce() async {
        do { try await KeyMethods(service: self).rotateKeysIfDue() } catch {
            environment.logger.warning("the signing keys could not be rotated", metadata: ["error": "\(error)"])
        }
        do { try await forgetExpiredSessions() } catch {
            environment.logger.warning("expired sessions could not be deleted", metadata: ["error": "\(error)"])
        }
        do { try await AnonymousUpkeep(service: self).forgetUnused() } catch {
            environment.logger.warning("unused accounts could not be deleted", metadata: ["error": "\(error)"])
        }
        do { try await forgetFormerAccounts() } catch {
            environment.logger.warning("former accounts could not be deleted", metadata: ["error": "\(error)"])
        }
        do { try await CodeUpkeep(service: self).forgetExpired() } catch {
            environment.logger.warning("expired codes could not be deleted", metadata: ["error": "\(error)"])
        }
        do { while try await UsedProviderTokens.forgetPage(now: environment.now(), in: store) {} } catch {
            environment.logger.warning(
                "expired tokens of providers could not be deleted", metadata: ["error": "\(error)"])
        }
        attempts.forgetExpired()
        await providers.refreshKeys()
        do {
            try await forgetEvents()
        } catch {
            environment.logger.warning("old events could not be deleted", metadata: ["error": "\(error)"])
        }
        do { try await auditWriter.forget(olderThanDays: configuration.keepAuditDays) } catch {
            environment.logger.warning("old audit entries could not be deleted", metadata: ["error": "\(error)"])
        }
        await keepRoom()
    }

    /// Deletes the events that are older than they are kept.
    func forgetEvents() async throws {
        let now = environment.now()
        let old = now - configuration.keepEventsSeconds * 1000
        try await store.read { [store] rows in
            if let version = try EventMarks.version(at: old, in: rows) { try store.compactCommits(through: version) }
        }
        let forgotten = try await store.read { try EventMarks.keys(through: old, in: $0) }
        guard !forgotten.isEmpty else { return }
        _ = try await store.write { rows in
            for key in forgotten { rows.deleteRow(key) }
        }
    }

    /// Deletes sessions that cannot be refreshed any more, one page per transaction so that none delays other writes.
    /// Returns their number. Rows that cannot be read stay.
    @discardableResult
    func forgetExpiredSessions() async throws -> Int {
        var range = AuthKey.sessions
        var (count, unreadable) = (0, 0)
        while true {
            let start = range
            let page = try await store.read { try Self.page(start, in: $0) }
            let now = environment.now()
            let policy = configuration.refresh
            let expired = page.sessions.filter { $0.rotation.isExpired(now: now, policy: policy) }.map(\.id)
            if !expired.isEmpty { count += try await forget(expired, now: now) }
            unreadable += page.unreadable
            guard let last = page.last else { break }
            range.lower = last + [0]
        }
        if unreadable > 0 {
            environment.logger.error("sessions cannot be read", metadata: ["rows": "\(unreadable)"])
        }
        return count
    }

    /// Deletes what is left of accounts whose last ID token has expired, one page per transaction.
    func forgetFormerAccounts() async throws {
        var range = AuthKey.formerAccounts
        while true {
            let start = range
            let now = environment.now()
            let last = try await store.write { rows -> [UInt8]? in
                var over: [[UInt8]] = []
                var (count, last): (Int, [UInt8]?) = (0, nil)
                try rows.rows(start) { key, value in
                    if let former = try? FormerAccountRecord(value), former.until < now { over.append(key) }
                    (count, last) = (count + 1, key)
                    return count < 500
                }
                for key in over { rows.deleteRow(key) }
                return last
            }.outcome
            guard let last else { return }
            range.lower = last + [0]
        }
    }

    private struct Page {
        var sessions: [SessionRecord] = []
        var unreadable = 0
        var last: [UInt8]?
    }

    private static func page(_ range: KeyRange, in rows: some StoreReading) throws -> Page {
        var page = Page()
        try rows.rows(range) { key, value in
            do { page.sessions.append(try SessionRecord(Array(key.dropFirst()), value)) } catch {
                page.unreadable += 1
            }
            page.last = key
            return page.sessions.count + page.unreadable < 500
        }
        return page
    }

    private func forget(_ ids: [[UInt8]], now: Int64) async throws -> Int {
        let policy = configuration.refresh
        let count = try await write { rows in
            // Read again: one of them may have been refreshed since.
            let sessions = try ids.compactMap { try SessionRows.find($0, in: rows) }
            let expired = sessions.filter { $0.rotation.isExpired(now: now, policy: policy) }
            rows.endsUnused = true
            for session in expired { SessionRows.delete(session.id, of: session.uid, in: rows) }
            return expired.count
        }.outcome
        metrics.forgotSessions(count)
        return count
    }
}
