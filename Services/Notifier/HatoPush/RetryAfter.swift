/// `Retry-After` (RFC 9110 §10.2.3), in seconds or as a date.
enum RetryAfter {
    /// A receiver cannot put a delivery off for longer than this: a mistaken date must not let it expire.
    static let longest = Duration.seconds(3_600)

    /// Nil without the header, and when it is neither. `now` in seconds since 1970.
    static func delay(_ text: String?, now: Int64) -> Duration? {
        guard let text else { return nil }
        if let seconds = Int64(text) { return min(max(.zero, .seconds(seconds)), longest) }
        guard let time = HTTPDate.seconds(text) else { return nil }
        return min(max(.zero, .seconds(time - now)), longest)
    }
}
