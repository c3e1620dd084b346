import HatoPush

/// The users whose attempts held their slots for long, and until when they count as slow. Pure.
///
/// An attempt that failed, or took long, makes its user slow for many times as long as it took. One that is delivered
/// does not end that: else a receiver that responds once would hang eight times after it. So a user holds a small part
/// of one slot on average before it is slow again, however the receiver behaves. At most `countMax` users are known,
/// twice; beyond, those that were added first are forgotten.
struct SlowUsers: Sendable {
    private static let countMax = 8_192
    /// An attempt that was delivered and took less makes no user slow.
    private static let quick: Int64 = 2_000
    /// What an attempt that failed at once counts as.
    private static let failure: Int64 = 1_000
    /// A user is slow for so many times as long as its attempt took.
    private static let factor: Int64 = 10
    /// The longest time that a user is slow after an attempt.
    static let longest: Int64 = 600_000

    private var newer: [String: Int64] = [:]
    private var older: [String: Int64] = [:]

    /// Times are in milliseconds.
    func contains(_ uid: String, at now: Int64) -> Bool {
        guard let end = newer[uid] ?? older[uid] else { return false }
        // A clock that was put back makes no user slow for longer.
        return end > now && end - Self.longest <= now
    }

    /// An attempt ended that took `duration` milliseconds.
    mutating func attemptEnded(of uid: String, _ outcome: DeliveryOutcome, after duration: Int64, at now: Int64) {
        let counted: Int64
        switch outcome {
        case .delivered, .deviceGone: counted = duration < Self.quick ? 0 : duration
        case .failed: counted = max(duration, Self.failure)
        // For lack of something of ours.
        case .postponed: counted = 0
        }
        guard counted > 0 else { return }
        let begin = contains(uid, at: now) ? newer[uid] ?? older[uid] ?? now : now
        if newer[uid] == nil, newer.count >= Self.countMax { (newer, older) = ([:], newer) }
        newer[uid] = min(begin + min(counted, Self.longest) * Self.factor, now + Self.longest)
    }
}
