import HatoModel
import HatoStorage

/// What stands of users' preferences.
struct PreferenceReading {
    private let reading: any StoreReading

    init(_ reading: any StoreReading) { self.reading = reading }

    /// Nil when none are set, or when they cannot be read.
    func record(of uid: String) throws -> PreferencesRecord? {
        uid.isEmpty ? nil : try reading.readable(PreferencesRecord.self, PreferencesRecord.key(uid))
    }

    /// The muted threads of a user that can be read, in their order.
    func mutes(of uid: String) throws -> [MuteRecord] {
        try reading.rows(MuteRecord.prefix(uid)).compactMap { row in
            try? RecordCodec.decode(MuteRecord.self, row.value, key: row.key.bytes)
        }
    }

    func isMuted(_ thread: String, for uid: String, at now: Int64) throws -> Bool {
        guard let mute = try reading.readable(MuteRecord.self, MuteRecord.key(uid, thread)) else { return false }
        return !mute.hasEnded(at: now)
    }

    /// The quiet windows of a user, nil without any. Without a time zone they are on the clock of the device that was
    /// registered last and has a known one, else of UTC.
    func quietHours(_ preferences: PreferencesRecord?, of uid: String) throws -> QuietHours? {
        guard let preferences, let windows = preferences.quiet else { return nil }
        let devices = preferences.timeZone == nil ? try reading.devices(of: uid) : []
        let clocks = [preferences.timeZone] + devices.sorted { $0.lastSeen > $1.lastSeen }.map(\.timeZone) + ["UTC"]
        let clock = clocks.lazy.compactMap(\.self).compactMap { ZoneClock(zone: $0) }.first
        return clock.map { QuietHours(clock: $0, windows: windows) }
    }
}
