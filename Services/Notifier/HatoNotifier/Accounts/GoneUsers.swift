import HatoModel
import HatoStorage

/// Removes devices, topics, preferences and counts of users that are gone, in pages, each a transaction: many users may
/// go at once, each with thousands of rows.
///
/// That a user is gone is a row, written with what says so, and goes with the last of the user's rows. Another one
/// stays, with a digest of the uid only, until there is such a user again: others may go on counting for one that is
/// gone.
struct GoneUsers: Sendable {
    let store: any Store

    /// Rows of one transaction, as far as users have no more devices than usual.
    private static let rowsMax = 1_024
    /// Users that one transaction looks at.
    private static let usersMax = 256

    private static let prefix = RecordKey(.gone)
    static func key(_ uid: String) -> RecordKey { prefix.with(uid) }

    private static func formerKey(_ uid: String) -> RecordKey {
        RecordKey(.former).with(UserDigest(uid: uid).value)
    }

    /// Whether auth said that a user is gone, and no such user came since: nothing is kept of it.
    static func isGone(_ uid: String, in rows: some StoreReading) throws -> Bool {
        try !uid.isEmpty && rows.contains(formerKey(uid))
    }

    /// There is a user with this uid again.
    static func cameBack(_ uid: String, _ writes: inout RecordWrites) { writes.delete(formerKey(uid)) }

    /// Remembers that a user is gone; returns whether it has rows, which are to be removed.
    static func begin(_ uid: String, at now: Int64, in rows: some StoreReading, _ writes: inout RecordWrites) throws
        -> Bool
    {
        writes.put(formerKey(uid))
        let prefixes = [
            RecordKey(.deviceOfUser).with(uid), TopicRecord.userPrefix(uid), RecordKey(.badge).with(uid),
        ]
        let hasRows = try prefixes.contains { try !rows.keys($0, limit: 1).isEmpty }
        guard try hasRows || PreferenceRows.exist(of: uid, in: rows) else { return false }
        writes.put(key(uid), GoneUserRecord(goneAt: now))
        return true
    }

    /// What a page came to.
    struct Page: Sendable {
        /// Devices that are gone now.
        var devices: [String] = []
        /// Whether users are left.
        var isLast = true
    }

    /// Removes the next rows.
    func removePage() async throws -> Page {
        try await store.write { try Self.removePage(in: $0) }.outcome
    }

    private static func removePage(in transaction: any StoreTransaction) throws -> Page {
        var (page, writes, topics) = (Page(), RecordWrites(), TopicChanges())
        var (uids, count): ([String], Int) = ([], 0)
        let users = try transaction.rows(prefix, limit: usersMax)
        for row in users where count < rowsMax {
            count += 1
            var reader = RecordKeyReader(row.key.bytes)
            guard let uid = reader.text() else {
                writes.delete(row.key)
                continue
            }
            let goneAt = try transaction.readable(GoneUserRecord.self, row.key)?.goneAt ?? .max
            // One that came since is of another user with this uid.
            for device in try transaction.devices(of: uid) where device.lastSeen <= goneAt {
                device.delete(in: &writes)
                page.devices.append(device.device)
                count += 1
            }
            uids.append(uid)
        }
        let done = try topics.removeAll(of: uids, max: rowsMax, in: transaction)
        let counted = try done.filter { try !transaction.keys(RecordKey(.badge).with($0), limit: 1).isEmpty }
        let preferring = try done.filter { try PreferenceRows.exist(of: $0, in: transaction) }
        page.isLast = users.count < usersMax && count < rowsMax && done.count == uids.count
        for uid in done { writes.delete(key(uid)) }
        try writes.apply(to: transaction)
        try topics.writes.apply(to: transaction)
        for uid in counted { transaction.deleteRange(KeyRange(prefix: RecordKey(.badge).with(uid).bytes)) }
        for uid in preferring { PreferenceRows.remove(of: uid, in: transaction) }
        return page
    }
}

/// A user that is gone, and of which rows are left.
struct GoneUserRecord: FieldObject, Hashable {
    /// In milliseconds since 1970.
    var goneAt: Int64

    static let fields = Fields<Self>(blank: Self(goneAt: 0), .required("goneAt", \.goneAt))
}
