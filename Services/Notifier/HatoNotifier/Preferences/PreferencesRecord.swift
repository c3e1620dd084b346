import HatoModel
import HatoStorage

/// What a user wants of notifications; muted threads have rows of their own, since one delivery needs one of them.
struct PreferencesRecord: FieldObject, Hashable {
    var timeZone: String?
    var quiet: [Notifier.QuietWindow]?
    var off: [Notifier.Platform]?
    /// Whether there are rows of muted threads.
    var hasMutes: Bool
    /// Whether a user of auth set them: they go when auth does not know the user any more.
    var isOfAccount: Bool

    static let fields = Fields<Self>(
        blank: Self(hasMutes: false, isOfAccount: false),
        .optional("timeZone", \.timeZone),
        .optional("quiet", \.quiet),
        .optional("off", \.off),
        .required("hasMutes", \.hasMutes),
        .required("isOfAccount", \.isOfAccount))

    static func key(_ uid: String) -> RecordKey { RecordKey(.preferences).with(uid) }

    /// Nothing is set.
    var isEmpty: Bool { timeZone == nil && quiet == nil && off == nil && !hasMutes }

    /// The same with what a request replaces; empty lists are as none.
    func replaced(by request: Notifier.Preferences.Set) -> PreferencesRecord {
        var record = self
        if let timeZone = request.timeZone { record.timeZone = timeZone.value }
        if let quiet = request.quiet { record.quiet = quiet.value.flatMap { $0.isEmpty ? nil : $0 } }
        if let off = request.off {
            let platforms = Notifier.Platform.allCases.filter { off.value?.contains($0) == true }
            record.off = platforms.isEmpty ? nil : platforms
        }
        return record
    }

    /// The same for a user with muted threads, or without.
    func with(mutes hasMutes: Bool, isOfAccount: Bool) -> PreferencesRecord {
        var record = self
        (record.hasMutes, record.isOfAccount) = (hasMutes, isOfAccount || record.isOfAccount)
        return record
    }

    func shown(with mutes: [MuteRecord]) -> Notifier.UserPreferences {
        var shown = Notifier.UserPreferences()
        (shown.timeZone, shown.quiet, shown.off) = (timeZone, quiet, off)
        if !mutes.isEmpty {
            shown.mutes = Dictionary(mutes.map { ($0.thread, $0.end) }, uniquingKeysWith: { $1 })
        }
        return shown
    }
}

/// A thread that a user muted.
struct MuteRecord: FieldObject, Hashable {
    var thread: String
    /// In milliseconds since 1970; nil: for ever.
    var until: Int64?

    static let fields = Fields<Self>(
        blank: Self(thread: ""),
        .required("thread", \.thread),
        .optional("until", \.until))

    init(thread: String, until: Int64? = nil) { (self.thread, self.until) = (thread, until) }

    static func prefix(_ uid: String) -> RecordKey { RecordKey(.mute).with(uid) }
    static func key(_ uid: String, _ thread: String) -> RecordKey { prefix(uid).with(thread) }

    func hasEnded(at now: Int64) -> Bool { until.map { $0 <= now } ?? false }

    /// Whether it does not end before another end; nil: for ever.
    func lasts(until end: Int64?) -> Bool {
        guard let until else { return true }
        return end.map { $0 <= until } ?? false
    }

    var end: Notifier.MuteEnd { until.map { .at(Int(clamping: $0)) } ?? .never }
}

extension StoreReading {
    /// Nil when none are set, or when they cannot be read.
    func preferences(of uid: String) throws -> PreferencesRecord? {
        uid.isEmpty ? nil : try readable(PreferencesRecord.self, PreferencesRecord.key(uid))
    }

    /// The muted threads of a user that can be read, in their order.
    func mutes(of uid: String) throws -> [MuteRecord] {
        try rows(MuteRecord.prefix(uid)).compactMap { row in
            try? RecordCodec.decode(MuteRecord.self, row.value, key: row.key.bytes)
        }
    }

    func isMuted(_ thread: String, for uid: String, at now: Int64) throws -> Bool {
        guard let mute = try readable(MuteRecord.self, MuteRecord.key(uid, thread)) else { return false }
        return !mute.hasEnded(at: now)
    }

    /// The quiet windows of a user, nil without any. Without a time zone they are on the clock of the device that was
    /// registered last and has a known one, else of UTC.
    func quietHours(_ preferences: PreferencesRecord?, of uid: String) throws -> QuietHours? {
        guard let preferences, let windows = preferences.quiet else { return nil }
        let devices = preferences.timeZone == nil ? try devices(of: uid) : []
        let clocks = [preferences.timeZone] + devices.sorted { $0.lastSeen > $1.lastSeen }.map(\.timeZone) + ["UTC"]
        let clock = clocks.lazy.compactMap(\.self).compactMap { ZoneClock(zone: $0) }.first
        return clock.map { QuietHours(clock: $0, windows: windows) }
    }
}
