import HatoModel

/// Decides which entries of the audit a transaction gets. Pure.
struct AuditPolicy: Sendable {
    /// Nil for the service's own work.
    var call: AuditedCall?
    var hasWritten: Bool
    /// The members of accounts that have changed, by uid.
    var changes: [String: [String]] = [:]

    init(call: AuditedCall?, hasWritten: Bool) {
        self.call = call
        self.hasWritten = hasWritten
    }

    /// - Parameters:
    ///   - events: What has become of accounts, ended sessions and keys.
    ///   - others: Entries besides.
    ///   - sessions: Entries of sessions, those that began among them.
    func records(
        of events: [AccountEvent], _ others: [AuditRecord], _ sessions: [AuditRecord]
    ) -> [AuditRecord] {
        let made = Set(events.filter { $0.type == .created }.compactMap(\.uid))
        var records = others
        for var session in sessions {
            // The first session of an account that its user made.
            if session.type == .signedIn, isByUser, session.uid.map(made.contains) == true { session.type = .signedUp }
            records.append(session)
        }
        let signedUp = Set(records.filter { $0.type == .signedUp }.compactMap(\.uid))
        // What ends the sessions of an account, or of a thief, ends each of them.
        let endings: Set<Auth.EventType> = [.revoked, .disabled, .deleted]
        let ended = Set(
            events.filter { endings.contains($0.type) }.compactMap(\.uid)
                + records.filter { $0.type == .refreshReused }.compactMap(\.uid))
        for event in events {
            if event.type == .created, event.uid.map(signedUp.contains) == true { continue }
            // Sessions that expire end by themselves.
            if event.type == .signedOut, call == nil || event.uid.map(ended.contains) == true { continue }
            records.append(record(of: event))
        }
        // Members that others do not read make no event.
        let updated = Set(events.filter { $0.type == .updated }.compactMap(\.uid))
        for uid in changes.keys.sorted() where !updated.contains(uid) {
            var record = AuditRecord(type(of: .updated), of: uid)
            record.reason = changedMembers(of: uid)
            records.append(record)
        }
        if records.isEmpty, hasWritten, call?.by != nil { records.append(AuditRecord(.administered)) }
        return records.map { call?.completed($0) ?? $0 }
    }

    private var isByUser: Bool { call?.by == nil }

    private func record(of event: AccountEvent) -> AuditRecord {
        var record = AuditRecord(type(of: event.type), of: event.uid)
        record.session = event.session
        record.reason = event.type == .updated ? event.uid.flatMap(changedMembers) : event.kid
        return record
    }

    private func changedMembers(of uid: String) -> String? { changes[uid]?.joined(separator: ", ") }

    private func type(of event: Auth.EventType) -> Auth.Audit.EntryType {
        let isImport = call?.method == Auth.Users.Import.method
        return switch event {
        case .created: isImport ? .imported : isByUser ? .signedUp : .created
        case .updated: isImport ? .imported : .updated
        case .deleted: .deleted
        case .disabled: .disabled
        case .enabled: .enabled
        case .revoked: .revoked
        case .signedOut: .signedOut
        case .keyRevoked: .keyRevoked
        }
    }
}
