/// `Thu, 26 Nov 2026 13:31:28 +0000` (RFC 5322 §3.3).
enum MailDate {
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    /// The last second of the year 9999.
    private static let secondsMax: Int64 = 253_402_300_799

    /// The date at a time in milliseconds since 1970, from then to the year 9999.
    static func text(_ milliseconds: Int64) -> String {
        let seconds = min(max(milliseconds / 1_000, 0), secondsMax)
        let days = seconds / 86_400
        let (year, month, day) = date(days)
        let clock = [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60].map(twoDigits).joined(separator: ":")
        let weekday = weekdays[Int((days + 4) % 7)]
        return "\(weekday), \(twoDigits(day)) \(months[Int(month) - 1]) \(year) \(clock) +0000"
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The date in the Gregorian calendar. Its eras of 400 years are counted from March of the year 0, so that the leap
    /// day is the last one of a year.
    private static func date(_ daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let days = daysSince1970 + 719_468
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
    }
}
