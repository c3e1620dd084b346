import HatoModel
import HatoStorage
import Logging
import Synchronization

/// Writes the failures of sign-ins, which have no transaction of their own: a second's together, after their responses,
/// so that the time of a response shows nothing, and an attacker causes one commit a second at most. What the last
/// second before a crash brought is lost.
///
/// State in memory: the failures that wait (`FailureLog`), whether the bytes were counted since the start, and how far
/// entries were deleted, each behind a lock that is never held across an `await`.
final class AuditWriter: Sendable {
    private let store: any Store
    private let environment: AuthEnvironment
    private let nameKey: [UInt8]
    private let keepsEntries: Bool
    private let bytesMax: Int
    private let log = Mutex(FailureLog())
    /// Whether the figures were compared with the rows since the start.
    private let areFiguresRight = Mutex(false)
    /// The key up to which `keepRoom` has looked at entries, a minute ago at most, since an entry is written some time
    /// after the time in its key. Those before it are of administrators and services, unless the clock was set back.
    private let lastLookedAt = Mutex<[UInt8]?>(nil)

    init(_ configuration: AuthConfiguration, _ store: any Store, _ environment: AuthEnvironment, key: [UInt8]) {
        self.store = store
        self.environment = environment
        nameKey = key
        keepsEntries = configuration.keepAuditDays > 0
        bytesMax = configuration.limits.auditBytesMax
    }

    /// A sign-in that was refused.
    ///
    /// - Parameters:
    ///   - uid: The account, where there is one.
    ///   - name: The e-mail address or the username that was given.
    func signInFailed(_ error: any Error, uid: String? = nil, name: String? = nil) {
        guard keepsEntries else { return }
        let reason = (error as? any RPCErrorConvertible)?.rpcError.reason ?? (error as? RPCError)?.reason
        var record = AuditRecord(.signInFailed, of: uid)
        record.reason = reason ?? "internal"
        record.email = name.map { AuditName.text($0, key: nameKey) }
        let call = AuditedCall.current
        if let call { record = call.completed(record) }
        let now = environment.now()
        log.withLock { [record] in $0.failed(record, of: call?.site, now: now) }
    }

    /// Writes what waits each second, and deletes what is too much, until the task is cancelled; then the rest.
    func run(_ metrics: AuthMetrics) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(1))
            await write()
            await keepRoom(metrics)
        }
        let now = environment.now()
        await write(log.withLock { $0.takenAtEnd(now: now) })
    }

    func write() async {
        let now = environment.now()
        await write(log.withLock { $0.isEmpty ? [] : $0.taken(now: now) })
    }

    /// Deletes entries that are kept no longer, the oldest first, a page per transaction, until the task is cancelled.
    func forget(olderThanDays days: Int64) async throws {
        var page = AuditRows.OldPage(before: environment.now() - days * 86_400_000, countMax: Self.pageMax)
        while !Task.isCancelled {
            let old = try await delete { [page] _, rows in try AuditRows.oldest(page, in: rows) }
            guard let next = old?.next else { return }
            page.from = next
        }
    }

    /// Deletes the oldest entries while all of them have more bytes than they may: then some more, so that it is not
    /// due again at once. What administrators and services did goes last: users make any number of entries.
    func keepRoom(_ metrics: AuthMetrics) async {
        do {
            guard try await store.read({ try StoreFigures.find(in: $0) }).auditBytes > bytesMax else { return }
            try await correctFigures()
            var dropped = 0
            var page = AuditRows.OldPage(from: start(), countMax: Self.pageMax, sparesAdministrators: true)
            var hasBegunAtFirst = page.from == nil
            while !Task.isCancelled {
                guard let old = try await deleteSurplus(page) else { break }
                dropped += old.count
                if page.sparesAdministrators, let last = old.last { looked(at: last) }
                metrics.droppedAudits(old.count)
                page.from = old.next
                if old.next == nil {
                    guard page.sparesAdministrators else { break }
                    // From the first entry once more, before what administrators did goes.
                    page.sparesAdministrators = !hasBegunAtFirst
                    hasBegunAtFirst = true
                }
                // Failed sign-ins do not wait for it.
                await write()
            }
            guard dropped > 0 else { return }
            environment.logger.warning(
                "the audit is full: its oldest entries were deleted", metadata: ["entries": "\(dropped)"])
        } catch {
            environment.logger.warning("audit entries that take too much room stay", metadata: ["error": "\(error)"])
        }
    }

    /// Where the entries begin that may be of users; nil: at the first one, as after the clock was set back.
    private func start() -> [UInt8]? {
        guard let last = lastLookedAt.withLock({ $0 }) else { return nil }
        return last.lexicographicallyPrecedes(key(at: environment.now())) ? last : nil
    }

    private func looked(at last: [UInt8]) {
        let minuteAgo = key(at: environment.now() - 60_000)
        lastLookedAt.withLock { $0 = last.lexicographicallyPrecedes(minuteAgo) ? last : minuteAgo }
    }

    private func key(at time: Int64) -> [UInt8] { AuthKey.audits.lower + UInt64(max(0, time)).bigEndianBytes }

    /// Deletes a page of the surplus; nil: there is none. A page that has nothing to delete costs no transaction.
    private func deleteSurplus(_ page: AuditRows.OldPage) async throws -> AuditRows.Old? {
        let (bytesMax, roomParts) = (bytesMax, Self.roomParts)
        @Sendable func choose(_ figures: StoreFigures, _ rows: some StoreReading) throws -> AuditRows.Old? {
            let surplus = figures.auditBytes - bytesMax + bytesMax / roomParts
            return surplus > 0 ? try AuditRows.oldest(page, bytesMin: surplus, in: rows) : nil
        }
        let found = try await store.read { rows in try choose(StoreFigures.find(in: rows), rows) }
        guard let found, found.count > 0 else { return found }
        // Others delete old entries, too: it is chosen again.
        return try await delete { figures, rows in try choose(figures, rows) }
    }

    /// An earlier version that has run on the store deletes entries without the figures: they are compared with the
    /// rows once, before anything is deleted for them.
    private func correctFigures() async throws {
        guard !areFiguresRight.withLock({ $0 }) else { return }
        let difference = try await withCheckedThrowingContinuation { continuation in
            store.submitRead(of: nil, isLong: true) { [store] in
                continuation.resume(
                    with: Result {
                        let rows = try store.snapshot().uncached
                        let bytes = try AuthKey.auditRanges.reduce(0) { try $0 + rows.bytes(of: $1) }
                        return try Int(clamping: bytes) - StoreFigures.find(in: rows).auditBytes
                    })
            }
        }
        if difference != 0 {
            _ = try await store.write { rows in
                var figures = try StoreFigures.find(in: rows)
                figures.addAudit(bytes: difference)
                figures.put(in: rows)
            }
        }
        areFiguresRight.withLock { $0 = true }
    }

    private static let pageMax = 500
    /// What is deleted besides is one of so many parts of the room.
    private static let roomParts = 64

    /// Deletes a page of entries, nil for none. Returns the page.
    private func delete(
        _ choose: @escaping @Sendable (StoreFigures, any StoreTransaction) throws -> AuditRows.Old?
    ) async throws -> AuditRows.Old? {
        try await store.write { rows in
            var figures = try StoreFigures.find(in: rows)
            guard let old = try choose(figures, rows) else { return nil }
            guard old.count > 0 else { return old }
            for key in old.keys { rows.deleteRow(key) }
            figures.addAudit(bytes: -old.bytes)
            figures.put(in: rows)
            return old
        }.outcome
    }

    private func write(_ failures: [(time: Int64, record: AuditRecord)]) async {
        guard !failures.isEmpty else { return }
        do {
            _ = try await store.write { rows in
                var figures = try StoreFigures.find(in: rows)
                for (index, failure) in failures.prefix(AuditRows.countMax).enumerated() {
                    let id = AuditID(time: failure.time, version: rows.nextVersion, index: index)
                    figures.addAudit(bytes: AuditRows.put(failure.record, id, in: rows))
                }
                figures.put(in: rows)
            }
        } catch {
            environment.logger.warning("failed sign-ins could not be recorded", metadata: ["error": "\(error)"])
        }
    }
}
