import Foundation
import Synchronization

/// The local time of an IANA time zone: what clocks on the wall show there. Pure; the rules of the zones are those of
/// Foundation.
struct ZoneClock: Sendable, Hashable {
    private let zone: TimeZone

    /// Nil for anything but the name of an IANA time zone, e.g. `Asia/Tokyo` or `UTC`: abbreviations such as `PST` and
    /// offsets have no rules for the change of the clock.
    init?(zone name: String) {
        guard name.contains("/") || Self.shortNames.contains(name), let zone = Self.known.zone(name) else { return nil }
        self.zone = zone
    }

    private static let known = KnownZones()

    /// Those of the names without an area that have rules of their own, or are the old names of zones with an area.
    private static let shortNames: Set<String> = [
        "UTC", "GMT", "CET", "EET", "MET", "WET", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "Cuba", "Egypt", "Eire",
        "GB", "GB-Eire", "Greenwich", "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya",
        "NZ", "NZ-CHAT", "Navajo", "PRC", "Poland", "Portugal", "ROC", "ROK", "Singapore", "Turkey", "UCT", "Universal",
        "W-SU", "Zulu",
    ]

    /// An instant, when a clock shows one time twice.
    enum Occurrence: Sendable {
        case first, last
    }

    /// Seconds of a day without a change of the clock.
    private static let day: Int64 = 86_400

    private func offset(at seconds: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    }

    /// The date at an instant, in days since 1970. Instants are seconds since 1970.
    func date(at seconds: Int64) -> Int64 {
        let local = seconds + offset(at: seconds)
        return (local - local.remainderAbove0(of: Self.day)) / Self.day
    }

    /// When the clock shows a time of a date: the first or the last time, if it shows it twice. A time that the clock
    /// leaves out is when it goes on.
    func instant(_ date: Int64, minutes: Int, _ occurrence: Occurrence) -> Int64 {
        let local = date * Self.day + Int64(minutes) * 60
        // No zone is a day away from UTC, and none changes its clock on two days in a row.
        let (before, after) = (offset(at: local - Self.day), offset(at: local + Self.day))
        let shown = [local - before, local - after].filter { $0 + offset(at: $0) == local }
        if let first = shown.min(), let last = shown.max() { return occurrence == .first ? first : last }
        var (low, high) = (local - Self.day, local + Self.day)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(at: middle) == before { low = middle } else { high = middle }
        }
        return high
    }
}

/// Time zones that were looked for, and those that do not exist: Foundation looks for each anew.
private final class KnownZones: Sendable {
    private let zones = Mutex<[String: TimeZone?]>([:])
    /// More than there are; names that users give are as many as they like.
    private static let zonesMax = 1_024

    func zone(_ name: String) -> TimeZone? {
        if let known = zones.withLock({ $0[name] }) { return known }
        let zone = TimeZone(identifier: name)
        zones.withLock { zones in
            if zones.count >= Self.zonesMax { zones.removeAll() }
            zones.updateValue(zone, forKey: name)
        }
        return zone
    }
}

extension Int64 {
    /// The remainder of the division that rounds down: from 0 to below `divisor`.
    func remainderAbove0(of divisor: Int64) -> Int64 { ((self % divisor) + divisor) % divisor }
}
