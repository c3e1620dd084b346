import HatoModel

/// The quiet windows of a user, on the clock of the user's time zone. Pure.
///
/// A window begins on each of its days at `from`, and ends at the next `to`: on the next day when `to` is not later
/// than `from`; if both are equal, it lasts a day. Where the clock changes:
/// - a `from` or `to` that the clock leaves out is when it goes on;
/// - of a time that the clock shows twice, `from` is the first and `to` the second, so that no window has a gap.
struct QuietHours: Sendable, Hashable {
    let clock: ZoneClock
    let windows: [Notifier.QuietWindow]

    /// What the windows say of an instant; times in milliseconds since 1970.
    enum State: Sendable, Hashable {
        case none
        case silent(until: Int64)
        case hold(until: Int64)

        var isHold: Bool { if case .hold = self { true } else { false } }
        var isSilent: Bool { if case .silent = self { true } else { false } }
    }

    /// The state at an instant, in milliseconds since 1970. Of windows of both modes, those that hold count.
    func state(at now: Int64) -> State {
        let seconds = (now - now.remainderAbove0(of: 1_000)) / 1_000
        let today = clock.date(at: seconds)
        var ends: [Notifier.QuietMode: Int64] = [:]
        // One that began yesterday may last; a clock that goes back over midnight shows yesterday again.
        for window in windows {
            for date in today - 1...today + 1 where window.days.contains(Self.weekday(of: date)) {
                guard let end = end(of: window, on: date, at: seconds) else { continue }
                ends[window.mode] = max(ends[window.mode] ?? end, end)
            }
        }
        if let end = ends[.hold] { return .hold(until: end * 1_000) }
        if let end = ends[.silent] { return .silent(until: end * 1_000) }
        return .none
    }

    /// When a window ends that begins on a date; nil outside of it.
    private func end(of window: Notifier.QuietWindow, on date: Int64, at seconds: Int64) -> Int64? {
        guard clock.instant(date, minutes: window.from.minutes, .first) <= seconds else { return nil }
        let lastDate = window.to.minutes > window.from.minutes ? date : date + 1
        let end = clock.instant(lastDate, minutes: window.to.minutes, .last)
        return seconds < end ? end : nil
    }

    /// The 1st of January 1970 was a Thursday.
    private static func weekday(of date: Int64) -> Notifier.Weekday {
        let days = Notifier.Weekday.allCases
        return days[Int((date + 3).remainderAbove0(of: Int64(days.count)))]
    }
}
