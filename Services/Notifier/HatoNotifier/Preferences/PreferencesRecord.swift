import HatoModel

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
