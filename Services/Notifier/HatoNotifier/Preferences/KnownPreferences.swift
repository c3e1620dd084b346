import HatoStorage

/// What one transaction has read of users' preferences: it visits many deliveries of one user.
struct KnownPreferences {
    /// The quiet windows of a user, and what they say now.
    struct Quiet {
        var hours: QuietHours
        var state: QuietHours.State
    }

    private var records: [String: PreferencesRecord?] = [:]
    private var quiet: [String: Quiet?] = [:]

    mutating func record(of uid: String, in rows: any StoreTransaction) throws -> PreferencesRecord? {
        if let known = records[uid] { return known }
        let record = try PreferenceReading(rows).record(of: uid)
        records.updateValue(record, forKey: uid)
        return record
    }

    /// Nil without windows.
    mutating func quiet(of uid: String, at now: Int64, in rows: any StoreTransaction) throws -> Quiet? {
        if let known = quiet[uid] { return known }
        let hours = try PreferenceReading(rows).quietHours(record(of: uid, in: rows), of: uid)
        let found = hours.map { Quiet(hours: $0, state: $0.state(at: now)) }
        quiet.updateValue(found, forKey: uid)
        return found
    }
}
