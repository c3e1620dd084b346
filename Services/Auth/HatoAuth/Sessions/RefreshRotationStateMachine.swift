import HatoIdentity

/// When a refresh token is accepted again, and when a session ends.
public struct RefreshPolicy: Sendable, Hashable {
    /// A token that was just used brings the same successor again: the answer was lost, or two tabs asked (spec auth
    /// §9).
    public var graceSeconds: Int64 = 30
    /// A session not refreshed for this long is over.
    public var idleSeconds: Int64 = 30 * 86_400
    /// A session is over this long after the sign-in, however used; 0: never.
    public var absoluteSeconds: Int64 = 0

    public init() {}
}

/// Decides what a refresh token of one session is worth.
///
/// Every token is good once: it brings its successor. Shown again within the grace window it brings the same successor,
/// so a lost answer loses no session and makes no second one; shown later, or older than that, it ends the session for
/// everybody, because then two hold it and one of them stole it (RFC 9700 §4.14.2).
///
/// Knows hashes only. The successor of a token is a function of the token and a secret, so it need not be kept to be
/// given again.
struct RefreshRotationStateMachine: Sendable, Hashable {
    enum Action: Hashable {
        /// The session goes on with the successor; write this state before answering.
        case rotate
        /// Answer with the same successor; nothing changes.
        case repeatSuccessor
        /// Somebody has a copy: end the session.
        case endReused
        /// Too old: end the session.
        case endExpired
    }

    private(set) var currentHash: [UInt8]
    var previousHash: [UInt8]?
    let createdAt: Int64
    /// When the current token was made.
    var rotatedAt: Int64

    /// Times in milliseconds.
    init(currentHash: [UInt8], createdAt: Int64) {
        self.currentHash = currentHash
        self.createdAt = createdAt
        rotatedAt = createdAt
    }

    /// Somebody showed a token of this session; both hashes as of `RefreshToken`.
    mutating func tokenWasPresented(
        _ hash: [UInt8], successor: [UInt8], now: Int64, policy: RefreshPolicy
    ) -> Action {
        if isExpired(now: now, policy: policy) { return .endExpired }
        if ConstantTime.isSame(hash, currentHash) {
            previousHash = currentHash
            currentHash = successor
            rotatedAt = now
            return .rotate
        }
        if let previousHash, ConstantTime.isSame(hash, previousHash), ConstantTime.isSame(successor, currentHash),
            now - rotatedAt <= policy.graceSeconds * 1000
        {
            return .repeatSuccessor
        }
        return .endReused
    }

    func isExpired(now: Int64, policy: RefreshPolicy) -> Bool {
        if now - rotatedAt >= policy.idleSeconds * 1000 { return true }
        return policy.absoluteSeconds > 0 && now - createdAt >= policy.absoluteSeconds * 1000
    }
}
