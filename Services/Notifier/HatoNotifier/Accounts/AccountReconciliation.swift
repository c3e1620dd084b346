import HatoModel
import HatoRPC
import HatoStorage
import Logging
import Synchronization

/// Asks auth about each user that has devices of a session, preferences, topics or counts, after events were missed,
/// and removes what is left of users and sessions that are no more.
///
/// How far it is stands in a row, from the moment when events were missed until all users were asked about: events are
/// followed meanwhile, and it goes on behind the last user after an error or a start. A user about whom auth could not
/// be asked is kept there and tried again; the others go on.
final class AccountReconciliation: Sendable {
    private let outbox: Outbox
    private let auth: RPCClient
    private let notices: ThrottledNotices
    /// Called after each user of whom something is gone.
    private let removed: @Sendable (Removed) -> Void
    /// Rings when there may be users to ask about.
    private let bell = Bell()
    /// The user about whom auth is being asked, and whether the account came or went since.
    private let asked = Mutex<(uid: String, hasChanged: Bool)>(("", false))

    /// Users that are kept to be tried again; with so many, no others are asked about.
    private static let failedMax = 64
    /// Users after which it is written down how far it is.
    private static let unwrittenMax = 64
    /// How long to wait after errors, in milliseconds.
    private static let (firstPause, longestPause) = (Int64(1_000), Int64(60_000))

    /// What is gone of a user.
    struct Removed: Sendable {
        /// Devices of sessions that are no more.
        var devices: [String] = []
        /// Whether the user is gone: the other rows are still to be removed.
        var isWhole = false
    }

    /// What auth said of a user may not be so any more.
    private struct ChangedMeanwhile: Error {}

    /// - Parameter auth: with a service key for `auth.sessions.list`.
    init(
        _ outbox: Outbox, auth: RPCClient, notices: ThrottledNotices, removed: @escaping @Sendable (Removed) -> Void
    ) {
        (self.outbox, self.auth, self.notices, self.removed) = (outbox, auth, notices, removed)
        // What the process before has left.
        bell.ring()
    }

    /// Events were missed: all users are to be asked about. Throws the errors of the store.
    func begin() async throws {
        _ = try await outbox.store.write { transaction in
            var writes = RecordWrites()
            writes.put(ReconciliationRecord.key, ReconciliationRecord(begun: transaction.nextVersion))
            try writes.apply(to: transaction)
        }
        bell.ring()
    }

    /// The account of a user came or went: what auth said of it before does not count. To be called in the transaction
    /// that handles the event.
    func accountChanged(_ uid: String) {
        asked.withLock { if $0.uid == uid { $0.hasChanged = true } }
    }

    /// Asks about users that are left, until the task is cancelled.
    func run() async {
        var pause = Self.firstPause
        for await _ in bell.rings {
            do {
                guard try await !goOn() else {
                    pause = Self.firstPause
                    continue
                }
            } catch {
                if Task.isCancelled { return }
                note(error)
            }
            do { try await outbox.time.sleepUntil(outbox.time.now() + pause) } catch { return }
            pause = min(2 * pause, Self.longestPause)
            bell.ring()
        }
    }

    private func note(_ error: any Error) {
        notices.notice(
            .trigger("accounts"), "it cannot be found out which users and sessions are no more",
            ["error": "\(error)"], level: .warning)
    }

    /// Goes on where it stopped. Returns whether nothing is left to do now.
    private func goOn() async throws -> Bool {
        let key = ReconciliationRecord.key
        guard var record = try await outbox.store.read({ try $0.readable(ReconciliationRecord.self, key) }) else {
            return true
        }
        let failed = record.failed
        record.failed = []
        for uid in failed { try await ask(about: uid, &record) }
        var unwritten = 0
        while record.failed.count < Self.failedMax, let stage = record.stage {
            let after = record.after
            guard let uid = try await outbox.store.read({ try stage.nextUser(after: after, in: $0) }) else {
                (record.stage, record.after) = (stage.next, nil)
                continue
            }
            if try await outbox.store.read({ try stage.concerns(uid, in: $0) }) { try await ask(about: uid, &record) }
            (record.after, unwritten) = (uid, unwritten + 1)
            guard unwritten == Self.unwrittenMax else { continue }
            unwritten = 0
            // Another begin has rung.
            guard try await write(record) else { return true }
        }
        return try await !write(record) || record.isDone
    }

    /// Returns whether it is still the one that was begun last.
    private func write(_ record: ReconciliationRecord) async throws -> Bool {
        try await outbox.store.write { transaction in
            let key = ReconciliationRecord.key
            guard try transaction.readable(ReconciliationRecord.self, key)?.begun == record.begun else { return false }
            var writes = RecordWrites()
            if record.isDone { writes.delete(key) } else { writes.put(key, record) }
            try writes.apply(to: transaction)
            return true
        }.outcome
    }

    /// Throws the errors of the store, and the end of the task.
    private func ask(about uid: String, _ record: inout ReconciliationRecord) async throws {
        do {
            let gone = try await reconcile(uid)
            if !gone.devices.isEmpty || gone.isWhole { removed(gone) }
        } catch let error as StoreError {
            throw error
        } catch let error as UnreadableRecord {
            // It would not be another time.
            note(error)
        } catch {
            try Task.checkCancellation()
            if !(error is ChangedMeanwhile) { note(error) }
            if !record.failed.contains(uid) { record.failed.append(uid) }
        }
    }

    private func reconcile(_ uid: String) async throws -> Removed {
        asked.withLock { $0 = (uid, false) }
        // What is registered after auth was asked has a newer session.
        let (known, wasGone) = try await outbox.store.read { rows in
            (try rows.devices(of: uid).filter { $0.session != nil }, try GoneUsers.isGone(uid, in: rows))
        }
        let sessions = try await sessions(of: uid)
        let ended = known.filter { $0.session.map((sessions ?? []).contains) == false }
        guard !ended.isEmpty || sessions == nil || wasGone else { return Removed() }
        let now = outbox.time.now()
        return try await outbox.store.write { [self] transaction in
            guard !asked.withLock({ $0.hasChanged }) else { throw ChangedMeanwhile() }
            var (gone, writes) = (Removed(), RecordWrites())
            let devices = try transaction.devices(of: uid)
            for device in devices
            where ended.contains(where: { $0.device == device.device && $0.session == device.session }) {
                device.delete(in: &writes)
                gone.devices.append(device.device)
            }
            // A user that has other devices need not be in auth.
            if sessions == nil, gone.devices.count == devices.count {
                gone.isWhole = try GoneUsers.begin(uid, at: now, in: transaction, &writes)
            }
            if sessions != nil, wasGone { GoneUsers.cameBack(uid, &writes) }
            let isOfAccount = try PreferenceReading(transaction).record(of: uid)?.isOfAccount == true
            try writes.apply(to: transaction)
            if sessions == nil, isOfAccount { PreferenceRows.remove(of: uid, in: transaction) }
            return gone
        }.outcome
    }

    /// Nil when there is no such user.
    private func sessions(of uid: String) async throws -> Set<String>? {
        do {
            var request = Auth.Sessions.List(uid: uid)
            // The most of one page: each one reads all sessions of the account.
            request.limit = 1_000
            var sessions: Set<String> = []
            repeat {
                let page = try await auth.call(request)
                sessions.formUnion(page.sessions.map(\.session))
                request.after = page.after
            } while request.after != nil
            return sessions
        } catch let error as RPCError where error.reason == "USER_NOT_FOUND" {
            return nil
        }
    }
}

/// About which users auth is still to be asked, since events were missed.
struct ReconciliationRecord: FieldObject, Hashable {
    /// The commit that began it.
    var begun: UInt64
    /// Nil: all users were asked about, but for those that failed.
    var stage: Stage?
    /// The user that was asked about last in its stage.
    var after: String?
    /// Users about whom auth could not be asked.
    var failed: [String]

    static let fields = Fields<Self>(
        blank: Self(begun: 0, stage: nil),
        .required("begun", \.begun),
        .optional("stage", \.stage),
        .optional("after", \.after),
        .required("failed", \.failed))

    init(begun: UInt64, stage: Stage? = .devices) { (self.begun, self.stage, failed) = (begun, stage, []) }

    static let key = RecordKey(.reconciliation)

    var isDone: Bool { stage == nil && failed.isEmpty }

    /// The rows of users, in the order in which they are gone through.
    enum Stage: String, FieldChoice {
        case devices, preferences, topics, counts

        var next: Stage? { Self.allCases.drop { $0 != self }.dropFirst().first }

        /// The first user behind another one that has such rows.
        func nextUser(after uid: String?, in rows: some StoreReading) throws -> String? {
            switch self {
            case .devices: try Self.nextUser(RecordKey(.deviceOfUser), after: uid, in: rows)
            case .preferences: try PreferenceRows.nextAccount(after: uid, in: rows)
            case .topics: try Self.nextUser(TopicRecord.usersPrefix, after: uid, in: rows)
            case .counts: try Self.nextUser(RecordKey(.badge), after: uid, in: rows)
            }
        }

        /// The first user behind `uid` among rows whose keys have the user behind `prefix`. Keys that cannot be read
        /// are passed over.
        private static func nextUser(
            _ prefix: RecordKey, after uid: String?, in rows: some StoreReading
        ) throws -> String? {
            var range = KeyRange(prefix: prefix.bytes)
            if let uid, let end = prefix.with(uid).end { range.lower = end }
            var next: String?
            guard !range.isEmpty else { return nil }
            try rows.scan(range, reverse: false) { key, _ in
                // It passes over one byte, the letter of a table.
                var reader = RecordKeyReader(key.copied.dropFirst(prefix.bytes.count - 1))
                next = reader.text()
                return next == nil ? .next : .stop
            }
            return next
        }

        /// Whether auth is to be asked about a user that has such rows.
        func concerns(_ uid: String, in rows: some StoreReading) throws -> Bool {
            switch self {
            case .devices: try rows.devices(of: uid).contains { $0.session != nil }
            case .preferences: true
            // A user that has devices of sessions still was found just now; one that has others need not be in auth.
            case .topics, .counts: try rows.devices(of: uid).isEmpty
            }
        }
    }
}
