import HatoModel
import HatoStorage

/// The rows of one user's preferences, as one transaction changes them.
struct PreferenceRows {
    let uid: String
    let mutesMax: Int
    /// Whether the user is one of auth.
    var isOfAccount = false

    /// Replaces what a request names. Throws `NotifierError.tooManyMutes`.
    func replace(by request: Notifier.Preferences.Set, in draft: inout OutboxDraft) throws {
        let former = try PreferenceReading(draft.transaction).record(of: uid) ?? PreferencesRecord.fields.blank
        var hasMutes = former.hasMutes
        if let replacement = request.mutes {
            let named = (replacement.value ?? [:]).sorted { $0.key < $1.key }.map { thread, end in
                MuteRecord(thread: thread, until: end.until)
            }
            for key in try draft.transaction.keys(MuteRecord.prefix(uid), limit: .max) { draft.writes.delete(key) }
            hasMutes = try !write(named, in: &draft).isEmpty
        }
        let record = former.replaced(by: request).with(mutes: hasMutes, isOfAccount: isOfAccount)
        put(record, in: &draft)
    }

    /// Mutes a thread, until a time in milliseconds since 1970 or until it is muted already; nil: for ever. Those that
    /// have ended go. Throws `NotifierError.tooManyMutes` when too many others are muted.
    func mute(_ thread: String, until: Int64?, in draft: inout OutboxDraft) throws {
        let former = try PreferenceReading(draft.transaction).record(of: uid) ?? PreferencesRecord.fields.blank
        let mutes = try PreferenceReading(draft.transaction).mutes(of: uid)
        if mutes.contains(where: { $0.thread == thread && $0.lasts(until: until) }) { return }
        let others = mutes.filter { $0.thread != thread }
        for mute in others where mute.hasEnded(at: draft.now) { draft.writes.delete(MuteRecord.key(uid, mute.thread)) }
        let lasting = others.count { !$0.hasEnded(at: draft.now) }
        guard lasting < mutesMax else { throw NotifierError.tooManyMutes(mutesMax) }
        draft.writes.put(MuteRecord.key(uid, thread), MuteRecord(thread: thread, until: until))
        put(former.with(mutes: true, isOfAccount: isOfAccount), in: &draft)
    }

    /// The same in a transaction of its own. Throws the errors of the store, too.
    func mute(_ thread: String, until: Int64?, in outbox: Outbox) async throws {
        try await outbox.change { [self] in try mute(thread, until: until, in: &$0) }
    }

    private func write(_ mutes: [MuteRecord], in draft: inout OutboxDraft) throws -> [MuteRecord] {
        let lasting = mutes.filter { !$0.hasEnded(at: draft.now) }
        guard lasting.count <= mutesMax else { throw NotifierError.tooManyMutes(mutesMax) }
        for mute in lasting { draft.writes.put(MuteRecord.key(uid, mute.thread), mute) }
        return lasting
    }

    private func put(_ record: PreferencesRecord, in draft: inout OutboxDraft) {
        let key = PreferencesRecord.key(uid)
        if record.isEmpty { draft.writes.delete(key) } else { draft.writes.put(key, record) }
    }

    /// Whether a user has any.
    static func exist(of uid: String, in rows: some StoreReading) throws -> Bool {
        try rows.contains(PreferencesRecord.key(uid)) || !rows.keys(MuteRecord.prefix(uid), limit: 1).isEmpty
    }

    /// Removes those of a user that is gone. The mutes of many users may be a million: they go as a range.
    static func remove(of uid: String, in transaction: any StoreTransaction) {
        transaction.delete(PreferencesRecord.key(uid).bytes)
        transaction.deleteRange(KeyRange(prefix: MuteRecord.prefix(uid).bytes))
    }

    /// The first user of auth behind another one that has preferences.
    static func nextAccount(after uid: String?, in rows: some StoreReading) throws -> String? {
        var last = uid.map { PreferencesRecord.key($0) }
        while let row = try rows.rows(RecordKey(.preferences), after: last, limit: 1).first {
            last = row.key
            var reader = RecordKeyReader(row.key.bytes)
            let record = try? RecordCodec.decode(PreferencesRecord.self, row.value, key: row.key.bytes)
            if record?.isOfAccount == true, let uid = reader.text() { return uid }
        }
        return nil
    }
}

extension Notifier.MuteEnd {
    /// In milliseconds since 1970; nil: for ever.
    fileprivate var until: Int64? {
        switch self {
        case .never: nil
        case .at(let time): Int64(time)
        }
    }
}
