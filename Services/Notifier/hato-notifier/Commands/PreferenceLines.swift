import ArgumentParser
import Foundation
import HatoCommand
import HatoModel

/// Preferences as lines that people read and write: `mon,tue 22:00-07:00 hold`, `c1=2026-12-01T08:00:00Z`.
enum PreferenceLines {
    /// A row for the time zone, each window, each muted thread, and each platform that is off.
    static func table(_ result: JSONValue) -> CommandTable {
        var table = CommandTable(["preference", "value"])
        if let zone = result["timeZone"] { table.append(["time zone", zone]) }
        for window in result["quiet"]?.array ?? [] { table.append(["quiet", .string(line(of: window))]) }
        for mute in result["mutes"]?.object?.members ?? [] {
            table.append(["muted", .string("\(mute.name) \(end(mute.value))")])
        }
        for platform in result["off"]?.array ?? [] { table.append(["off", platform]) }
        return table
    }

    private static func line(of window: JSONValue) -> String {
        let days = (window["days"]?.array ?? []).compactMap(\.string).joined(separator: ",")
        return "\(days) \(text(window["from"]))-\(text(window["to"])) \(text(window["mode"]))"
    }

    private static func text(_ value: JSONValue?) -> String { value?.string ?? "" }

    private static func end(_ value: JSONValue) -> String {
        guard let milliseconds = value.number else { return "for ever" }
        // Years of four digits.
        guard (0..<253_402_300_800_000).contains(milliseconds) else { return "until \(milliseconds)" }
        return "until \(Date(timeIntervalSince1970: milliseconds / 1_000).formatted(.iso8601))"
    }

    /// A window of `mon-fri 22:00-07:00 hold`. Throws `ValidationError` that says how a window is written.
    static func window(_ line: String) throws -> JSONValue {
        let words = line.split(separator: " ")
        guard words.count == 3, let days = days(words[0]), let mode = Notifier.QuietMode(rawValue: String(words[2])),
            let times = try? words[1].split(separator: "-").map({ try Notifier.WallTime(String($0)) }), times.count == 2
        else {
            throw ValidationError(
                """
                --quiet '\(line)': give days, from-to and silent or hold, e.g. 'mon,tue 22:00-07:00 hold' or \
                'mon-fri 22:00-07:00 silent'.
                """)
        }
        return Notifier.QuietWindow(days: days, from: times[0], to: times[1], mode: mode).json
    }

    /// `mon,tue` and `mon-fri`, also `fri-mon`.
    private static func days(_ text: Substring) -> [Notifier.Weekday]? {
        let all = Notifier.Weekday.allCases
        var days: [Notifier.Weekday] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { all.firstIndex(named: $0) }
            guard (1...2).contains(ends.count), let first = ends.first ?? nil, let last = ends.last ?? nil else {
                return nil
            }
            let count = last >= first ? last - first + 1 : last - first + 1 + all.count
            days += (0..<count).map { all[(first + $0) % all.count] }
        }
        return days
    }

    /// The thread and the end of `c1` or `c1=2026-12-01T08:00:00Z`. Throws `ValidationError` for another time.
    static func mute(_ line: String) throws -> (thread: String, end: JSONValue) {
        guard let sign = line.lastIndex(of: "=") else { return (line, true) }
        let time = String(line[line.index(after: sign)...])
        guard let date = try? Date(time, strategy: .iso8601) else {
            throw ValidationError("--mute \(line): the time is written as in c1=2026-12-01T08:00:00Z.")
        }
        return (String(line[..<sign]), .number((date.timeIntervalSince1970 * 1_000).rounded()))
    }
}

extension [Notifier.Weekday] {
    fileprivate func firstIndex(named name: Substring) -> Int? { firstIndex { $0.rawValue == name } }
}
