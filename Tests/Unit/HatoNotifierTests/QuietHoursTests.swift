import Foundation
import HatoModel
import Testing

@testable import HatoNotifier

/// What quiet windows say of instants, in nights in which the clock changes and in others.
@Suite struct QuietHoursTests {
    /// Milliseconds since 1970 of a time in UTC.
    private func at(_ text: String) throws -> Int64 {
        Int64(try Date("\(text):00Z", strategy: .iso8601).timeIntervalSince1970) * 1_000
    }

    private func hours(
        _ zone: String, _ days: [Notifier.Weekday], _ times: (from: String, to: String),
        _ mode: Notifier.QuietMode = .hold
    ) throws -> QuietHours {
        let window = Notifier.QuietWindow(
            days: days, from: try Notifier.WallTime(times.from), to: try Notifier.WallTime(times.to), mode: mode)
        return QuietHours(clock: try #require(ZoneClock(zone: zone)), windows: [window])
    }

    /// Quiet from the first to the last instant, and not right before and after.
    private func check(_ hours: QuietHours, from: String, to: String) throws {
        let (begin, end) = (try at(from), try at(to))
        #expect(hours.state(at: begin - 1) == .none, "before \(from)")
        #expect(hours.state(at: begin) == .hold(until: end), "at \(from)")
        #expect(hours.state(at: end - 1) == .hold(until: end), "before \(to)")
        #expect(hours.state(at: end) == .none, "at \(to)")
    }

    @Test func aWindowLastsOverMidnight() throws {
        let hours = try hours("Asia/Tokyo", [.fri], ("22:00", "07:00"))
        try check(hours, from: "2026-06-05T13:00", to: "2026-06-05T22:00")
        // The night before, and the one after.
        #expect(hours.state(at: try at("2026-06-04T14:00")) == .none)
        #expect(hours.state(at: try at("2026-06-06T14:00")) == .none)
        try check(
            self.hours("Asia/Tokyo", [.sat], ("13:00", "14:30")), from: "2026-06-06T04:00", to: "2026-06-06T05:30")
        // From and to are equal: the whole day.
        try check(
            self.hours("Asia/Tokyo", [.sun], ("00:00", "00:00")), from: "2026-06-06T15:00", to: "2026-06-07T15:00")
    }

    @Test func aNightInBerlinLosesAnHourAndAnotherGainsOne() throws {
        let night = try hours("Europe/Berlin", [.sat], ("22:00", "07:00"))
        try check(night, from: "2026-03-28T21:00", to: "2026-03-29T05:00")
        try check(night, from: "2026-10-24T20:00", to: "2026-10-25T06:00")
    }

    @Test func aNightInNewYorkLosesAnHourAndAnotherGainsOne() throws {
        let night = try hours("America/New_York", [.sat], ("22:00", "07:00"))
        try check(night, from: "2026-03-08T03:00", to: "2026-03-08T11:00")
        try check(night, from: "2026-11-01T02:00", to: "2026-11-01T12:00")
    }

    @Test func aTimeThatTheClockLeavesOutIsWhenItGoesOn() throws {
        let berlin = { try hours("Europe/Berlin", [.sun], ($0, $1)) }
        try check(berlin("02:30", "04:00"), from: "2026-03-29T01:00", to: "2026-03-29T02:00")
        try check(berlin("01:00", "02:30"), from: "2026-03-29T00:00", to: "2026-03-29T01:00")
        // All of it is left out.
        let gap = try berlin("02:10", "02:50")
        for time in ["2026-03-29T00:59", "2026-03-29T01:00", "2026-03-29T01:10"] {
            #expect(gap.state(at: try at(time)) == .none)
        }
        let newYork = try hours("America/New_York", [.sun], ("02:15", "05:00"))
        try check(newYork, from: "2026-03-08T07:00", to: "2026-03-08T09:00")
    }

    @Test func ofATimeThatIsShownTwiceAWindowHasAll() throws {
        let berlin = { try hours("Europe/Berlin", [.sun], ($0, $1)) }
        // From the first 02:30, to the second one.
        try check(berlin("02:30", "04:00"), from: "2026-10-25T00:30", to: "2026-10-25T03:00")
        try check(berlin("01:00", "02:30"), from: "2026-10-24T23:00", to: "2026-10-25T01:30")
        try check(berlin("02:15", "02:45"), from: "2026-10-25T00:15", to: "2026-10-25T01:45")
        let newYork = try hours("America/New_York", [.sun], ("01:00", "01:30"))
        try check(newYork, from: "2026-11-01T05:00", to: "2026-11-01T06:30")
    }

    @Test func zonesOfWhichMidnightIsLeftOutHaveTheirWindows() throws {
        // The clocks of Santiago went from 00:00 to 01:00 on the 7th of September 2025.
        try check(
            hours("America/Santiago", [.sun], ("00:00", "06:00")), from: "2025-09-07T04:00", to: "2025-09-07T09:00")
        // And from 24:00 back to 23:00 on the 5th of April 2025.
        try check(
            hours("America/Santiago", [.sat], ("23:30", "06:00")), from: "2025-04-06T02:30", to: "2025-04-06T10:00")
        try check(
            hours("America/Santiago", [.sun], ("00:00", "06:00")), from: "2025-04-06T04:00", to: "2025-04-06T10:00")
    }

    @Test func ofWindowsThatOverlapTheOneThatHoldsCounts() throws {
        var hours = try hours("UTC", Notifier.Weekday.allCases, ("20:00", "08:00"), .silent)
        let noon = try self.hours("UTC", Notifier.Weekday.allCases, ("22:00", "06:00"))
        hours = QuietHours(clock: hours.clock, windows: hours.windows + noon.windows)
        #expect(hours.state(at: try at("2026-06-05T21:00")) == .silent(until: try at("2026-06-06T08:00")))
        #expect(hours.state(at: try at("2026-06-05T23:00")) == .hold(until: try at("2026-06-06T06:00")))
        #expect(hours.state(at: try at("2026-06-06T07:00")) == .silent(until: try at("2026-06-06T08:00")))
    }

    @Test func onlyNamesOfTimeZonesAreTaken() {
        for name in [
            "Asia/Tokyo", "Asia/Kolkata", "Asia/Calcutta", "UTC", "America/Argentina/Buenos_Aires", "Japan", "NZ",
        ] {
            #expect(ZoneClock(zone: name) != nil, "\(name)")
        }
        for name in ["", "PST", "GMT+3", "asia/tokyo", "Asia/Tokyo ", "../etc/passwd", "Asia/Nowhere", "+09:00"] {
            #expect(ZoneClock(zone: name) == nil, "\(name)")
        }
    }

    @Test func timesOfTheDayAreRead() throws {
        #expect(try ["00:00", "23:59"].map { try Notifier.WallTime($0).minutes } == [0, 1_439])
        #expect(try Notifier.WallTime("07:05").description == "07:05")
        for text in ["", "7:00", "24:00", "12:60", "12-00", "12:0a", "012:00", "12:00 ", "١٢:٠٠"] {
            #expect(throws: ArgumentError.self, "\(text)") { try Notifier.WallTime(text) }
        }
    }
}
