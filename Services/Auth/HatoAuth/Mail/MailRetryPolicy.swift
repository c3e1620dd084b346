import HatoModel

/// Decides when a mail that was not accepted is sent again: after a minute, then twice as long each time up to an hour,
/// with a jitter of a half; dead once it is of no use.
struct MailRetryPolicy: Sendable {
    static let first: Int64 = 60_000
    static let longest: Int64 = 3_600_000
    /// While the server cannot be reached or gives no service, for all mails.
    static let firstPause: Int64 = 1_000
    static let longestPause: Int64 = 300_000
    /// A server is asked for at most this long.
    static let tryFor: Int64 = 86_400_000

    /// Whether the mail may be sent; also when it was to wait for longer than any mail: the clock was set back since.
    static func isDue(_ mail: MailRecord, now: Int64) -> Bool {
        guard let nextAt = mail.nextAt else { return false }
        return nextAt <= now || nextAt - now > longest
    }

    /// The mail after an attempt at `now` that failed for now.
    ///
    /// - Parameter random: at least 0 and below 1.
    static func failed(_ mail: MailRecord, _ error: String, now: Int64, random: Double) -> MailRecord {
        var mail = counted(mail, error)
        let nextAt = now + jittered(first, longest, doublings: mail.attempts - 1, random: random)
        mail.nextAt = nextAt < mail.until ? nextAt : nil
        return mail
    }

    /// The mail after it was refused for good.
    static func refused(_ mail: MailRecord, _ error: String) -> MailRecord {
        var mail = counted(mail, error)
        mail.nextAt = nil
        return mail
    }

    /// The mail at its end without another attempt.
    ///
    /// - Parameter isOfUse: whether its code is still good.
    static func over(_ mail: MailRecord, isOfUse: Bool) -> MailRecord {
        var mail = mail
        let words = isOfUse ? "the server did not accept it in a day" : "its code expired before the server accepted it"
        mail.error = mail.error ?? words
        mail.nextAt = nil
        return mail
    }

    /// How long no mail is sent after so many failures of the server in a row.
    static func pause(afterFailures count: Int, random: Double) -> Int64 {
        jittered(firstPause, longestPause, doublings: count - 1, random: random)
    }

    private static func jittered(_ first: Int64, _ longest: Int64, doublings: Int, random: Double) -> Int64 {
        let wait = min(longest, first << Int64(min(max(0, doublings), 20)))
        return wait / 2 + Int64(Double(wait / 2) * random)
    }

    private static func counted(_ mail: MailRecord, _ error: String) -> MailRecord {
        var mail = mail
        mail.attempts += 1
        mail.error = String(error.unicodeScalars.prefix(400))
        return mail
    }
}
