import HatoFollow
import HatoModel
import HatoStorage
import Synchronization

/// One write of accounts and sessions. What it changes is recorded with its commit, for the followers of `auth.follow`:
/// accounts and sessions are written through it only.
final class AuthTransaction: StoreReading, StoreWriting {
    private let rows: any StoreTransaction
    private var events: [AccountEvent] = []
    /// Ended sessions, with their users.
    private var ended: [(uid: String, id: [UInt8])] = []
    private var hasWritten = false
    /// Whether the accounts and sessions that end have no ID token left, as those that were not used for long.
    var endsUnused = false
    /// The call that writes; nil for the service's own work.
    private let call: AuditedCall?
    private var audits: [AuditRecord] = []
    /// What has become of sessions.
    private var sessions: [AuditedSession] = []
    /// The members of accounts that have changed, by uid.
    private var changes: [(uid: String, members: [String])] = []
    private var accountsAdded = 0
    private var figures: StoreFigures

    private struct AuditedSession {
        var type: Auth.Audit.EntryType
        var session: SessionRecord
        var signer: String?
    }

    /// Throws the errors of the store.
    init(_ rows: any StoreTransaction, _ call: AuditedCall? = nil) throws {
        self.rows = rows
        self.call = call
        figures = try StoreFigures.find(in: rows)
    }

    func get(_ key: Span<UInt8>) throws -> [UInt8]? { try rows.get(key) }

    func scan(
        _ range: KeyRange, reverse: Bool, _ visit: (_ key: Span<UInt8>, _ value: Span<UInt8>) throws -> ScanStep
    ) throws {
        try rows.scan(range, reverse: reverse, visit)
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        hasWritten = true
        rows.put(key, value)
    }

    func delete(_ key: Span<UInt8>) {
        hasWritten = true
        rows.delete(key)
    }

    func deleteRange(_ range: KeyRange) {
        hasWritten = true
        rows.deleteRange(range)
    }

    /// Records what has become of an account or a key.
    func record(_ event: AccountEvent) { events.append(event) }

    /// Records that a session has ended.
    func endedSession(_ id: [UInt8], of uid: String) { ended.append((uid, id)) }

    /// Adds an entry to the audit.
    func audit(_ record: AuditRecord) { audits.append(record) }

    /// Adds an entry to the audit.
    func audit(_ type: Auth.Audit.EntryType, of uid: String? = nil, reason: String? = nil) {
        var record = AuditRecord(type, of: uid)
        record.reason = reason
        audits.append(record)
    }

    /// Adds an entry about a session to the audit; `signedIn` for one that begins.
    ///
    /// - Parameter signer: the service account whose custom token began it.
    func audit(_ type: Auth.Audit.EntryType, of session: SessionRecord, signer: String? = nil) {
        sessions.append(AuditedSession(type: type, session: session, signer: signer))
    }

    /// Counts an account that is made (1) or deleted (-1).
    func countAccount(_ change: Int) { accountsAdded += change }

    /// Records which members of an account have changed.
    func changed(_ members: [String], of uid: String) { changes.append((uid, members)) }

    /// Records the events with the commit. Called once, after everything is written.
    ///
    /// - Parameters:
    ///   - time: The time of the events, in milliseconds since 1970.
    ///   - lifetime: How long ID tokens are valid, in milliseconds.
    ///   - key: The key of `SessionName`.
    ///   - isAudited: Whether entries of the audit are kept.
    fileprivate func finish(at time: Int64, lifetime: Int64, key: [UInt8], isAudited: Bool) {
        let deleted = Set(events.filter { $0.type == .deleted }.compactMap(\.uid))
        // The end of an account includes that of its sessions.
        for session in ended where !deleted.contains(session.uid) {
            var event = AccountEvent(.signedOut, of: session.uid)
            event.session = SessionName.text(session.id, key: key)
            events.append(event)
        }
        for index in events.indices {
            events[index].time = time
            if events[index].endsTokens { events[index].until = endsUnused ? time : time + lifetime }
        }
        AccountEvent.record(events, in: rows)
        if let newest = AccountEvent.position(ofLast: events, in: rows) {
            EventMarks.put(newestPosition: newest, in: rows)
        }
        let found = figures
        figures.addAccounts(accountsAdded)
        if isAudited { writeAudit(at: time, key) }
        if figures != found { figures.put(in: rows) }
    }

    private func writeAudit(at time: Int64, _ key: [UInt8]) {
        var policy = AuditPolicy(call: call, hasWritten: hasWritten)
        for change in changes { policy.changes[change.uid, default: []] += change.members }
        let records = policy.records(of: events, audits, named(sessions, key)).prefix(AuditRows.countMax)
        for (index, record) in records.enumerated() {
            let id = AuditID(time: time, version: rows.nextVersion, index: index)
            figures.addAudit(bytes: AuditRows.put(record, id, in: rows))
        }
    }

    private func named(_ sessions: [AuditedSession], _ key: [UInt8]) -> [AuditRecord] {
        sessions.map { audited in
            let session = audited.session
            var record = AuditRecord(audited.type, of: session.uid)
            record.session = SessionName.text(session.id, key: key)
            record.provider = session.provider.description
            record.label = session.label
            record.signer = audited.signer
            // A used token is presented from elsewhere: the address is that of the call.
            record.address = audited.type == .refreshReused ? nil : session.address
            return record
        }
    }

    /// Marks the version from before the commit at `time`, if it writes something.
    fileprivate func mark(at time: Int64, ifDue isDue: () -> Bool) {
        if hasWritten, isDue() { EventMarks.mark(rows.nextVersion - 1, at: time, in: rows) }
    }
}

extension AuthService {
    /// Whether the last mark is an hour old; then the next one is in an hour.
    private func isMarkDue(at time: Int64) -> Bool {
        lastMark.withLock { last in
            guard time - last >= 3_600_000 else { return false }
            last = time
            return true
        }
    }

    /// Commits what `body` writes, with the events for followers. It reads first and writes after, as every transaction
    /// of a store.
    ///
    /// - Throws: what `body` throws, and then nothing is written; the errors of the store.
    func write<Outcome: Sendable>(
        _ body: @escaping @Sendable (AuthTransaction) throws -> Outcome
    ) async throws -> Committed<Outcome> {
        let call = AuditedCall.current
        return try await store.write { [self] rows in
            let longest = try LongestLifetime.find(in: rows)
            let transaction = try AuthTransaction(rows, call)
            let outcome = try body(transaction)
            let now = environment.now()
            transaction.mark(at: now) { isMarkDue(at: now) }
            let lifetime = max(configuration.tokenLifetimeSeconds * 1000, longest)
            transaction.finish(
                at: now, lifetime: lifetime, key: refreshKey, isAudited: configuration.keepAuditDays > 0)
            return outcome
        }
    }
}
