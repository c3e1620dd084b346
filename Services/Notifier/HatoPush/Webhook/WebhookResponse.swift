/// Decides what a receiver's answer means: 2xx is delivered, 410 says that the receiver is gone, everything else is a
/// failure that is tried again, redirects too, which are never followed. `Retry-After` of 429 and 503 is a floor.
struct WebhookResponse: Hashable {
    var status: Int
    var retryAfter: String?
    /// The beginning of the answer's body.
    var excerpt: String

    /// `now` in seconds since 1970, for the form of `Retry-After` that is a date.
    func outcome(now: Int64) -> DeliveryOutcome {
        switch status {
        case 200..<300: .delivered(DeliveryResponse(status: status))
        case 410: .deviceGone(DeliveryResponse(status: status, error: "the receiver is gone"), since: nil)
        case 300..<400: .failed(response("redirects are not followed"), retryAfter: nil)
        case 429, 503: .failed(response("the receiver is busy"), retryAfter: RetryAfter.delay(retryAfter, now: now))
        default: .failed(response("the receiver failed"), retryAfter: nil)
        }
    }

    private func response(_ what: String) -> DeliveryResponse {
        DeliveryResponse(status: status, error: excerpt.isEmpty ? what : "\(what): \(excerpt)")
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that HTTP's senders must use (RFC 9110 §5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Seconds since 1970; nil when it is no such date.
    static func seconds(_ text: String) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int64(parts[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])), let year = Int64(parts[3]),
            (1_970...9_999).contains(year)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int64($0) }
        guard clock.count == 3, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2]
    }

    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
