import HatoIdentity
import HatoModel

/// When a refresh token is accepted again, and when a session expires.
public struct RefreshPolicy: Sendable, Hashable {
    /// A token that was just used leads to the newest one again: the response was lost, or two tabs refreshed (spec
    /// auth §9).
    public var graceSeconds: Int64 = 30
    /// A used token whose successor was never presented returns that successor for this long: the response was lost,
    /// and the device was off; 0: only for `graceSeconds`.
    public var lateSeconds: Int64 = 7 * 86_400
    /// A session expires when it is not refreshed for this long.
    public var idleSeconds: Int64 = 30 * 86_400
    /// A session expires this long after the sign-in, however used; 0: never.
    public var absoluteSeconds: Int64 = 0

    public init() {}
}

/// Decides the result of presenting a refresh token of one session.
///
/// Every token is valid once and returns its successor. A client that did not receive the response presents the token
/// again:
///
/// - Within the grace window after its use, a token returns the newest one, also when other holders of the token have
///   gone on meanwhile: two tabs, an app and its extension.
/// - Later, while its successor was never presented, it returns that successor: a late repetition. Three generations in
///   a row with one are two holders.
/// - Everything else ends the session for all holders, because one of them stole the token (RFC 9700 §4.14.2).
///
/// It holds hashes only. The successor of a token is a function of the token and a secret, so it need not be stored to
/// be returned again.
struct RefreshRotationStateMachine: Sendable, Hashable {
    enum Action: Hashable {
        /// The session continues with the successor; write this state before responding.
        case rotate
        /// Respond with the token that is so many steps after the presented one, the newest; nothing changes.
        case repeatNewest(steps: Int)
        /// Respond with the successor again, late; write this state before responding.
        case repeatLate
        /// The token may have been copied: end the session.
        case endReused
        /// Expired: end the session.
        case endExpired
    }

    /// A presented token leads to the newest one over at most so many successors.
    static let stepsMax = 8
    private static let lateInARowMax = 3

    private(set) var currentHash: [UInt8]
    var previousHash: [UInt8]?
    private(set) var createdAt: Int64
    /// The time of issue of the current token, when the one before it was used.
    var rotatedAt: Int64
    /// When the tokens before that one were used, the newest first, as far as it was within the grace window before
    /// `rotatedAt`; nil: none was.
    var earlierUses: [Int64]?
    /// How many generations in a row had a late repetition, up to the current one; nil: none.
    var lateInARow: Int?
    /// Whether the current one had.
    var isLate = false

    /// - Parameters:
    ///   - createdAt: when the user signed in, in milliseconds, as all times here.
    ///   - rotatedAt: when the first token was issued; nil: at the sign-in.
    init(currentHash: [UInt8], createdAt: Int64, rotatedAt: Int64? = nil) {
        self.currentHash = currentHash
        self.createdAt = createdAt
        self.rotatedAt = rotatedAt ?? createdAt
    }

    /// A token of this session was presented.
    ///
    /// - Parameter chain: its hash (`RefreshToken`) and those of its next `stepsMax` successors.
    mutating func tokenWasPresented(_ chain: [[UInt8]], now: Int64, policy: RefreshPolicy) -> Action {
        if isExpired(now: now, policy: policy) { return .endExpired }
        let grace = policy.graceSeconds * 1000
        switch chain.firstIndex(where: { ConstantTime.isSame($0, currentHash) }) {
        case 0?:
            guard chain.count > 1 else { return .endReused }
            rotate(to: chain[1], now: now, grace)
            return .rotate
        case 1?:
            if now - rotatedAt <= grace { return .repeatNewest(steps: 1) }
            guard now - rotatedAt <= policy.lateSeconds * 1000 else { return .endReused }
            return repeatLate()
        case let steps?:
            guard let uses = earlierUses, steps - 2 < uses.count, now - uses[steps - 2] <= grace else {
                return .endReused
            }
            return .repeatNewest(steps: steps)
        case nil: return .endReused
        }
    }

    private mutating func rotate(to successor: [UInt8], now: Int64, _ grace: Int64) {
        // At its creation no token had been used.
        let uses = (previousHash == nil ? [] : [rotatedAt]) + (earlierUses ?? [])
        let recent = uses.prefix { now - $0 <= grace }.prefix(Self.stepsMax - 1)
        earlierUses = recent.isEmpty ? nil : Array(recent)
        if !isLate { lateInARow = nil }
        isLate = false
        previousHash = currentHash
        currentHash = successor
        rotatedAt = now
    }

    private mutating func repeatLate() -> Action {
        guard !isLate else { return .repeatLate }
        isLate = true
        lateInARow = (lateInARow ?? 0) + 1
        return (lateInARow ?? 0) < Self.lateInARowMax ? .repeatLate : .endReused
    }

    /// Whether a holder of this token may begin another session: it is the current one, or the one before it, which
    /// would be repeated.
    func mayFork(_ hash: [UInt8], now: Int64, policy: RefreshPolicy) -> Bool {
        if ConstantTime.isSame(hash, currentHash) { return true }
        guard let previousHash, ConstantTime.isSame(hash, previousHash) else { return false }
        return now - rotatedAt <= max(policy.graceSeconds, policy.lateSeconds) * 1000
    }

    /// Whether the first of these tokens leads to the current one.
    func isReached(by chain: [[UInt8]]) -> Bool { chain.contains { ConstantTime.isSame($0, currentHash) } }

    func isExpired(now: Int64, policy: RefreshPolicy) -> Bool {
        if now - rotatedAt >= policy.idleSeconds * 1000 { return true }
        return policy.absoluteSeconds > 0 && now - createdAt >= policy.absoluteSeconds * 1000
    }
}

extension RefreshRotationStateMachine: FieldObject {
    static let fields = Fields<Self>(
        blank: Self(currentHash: [], createdAt: 0),
        .bytes("current", \.currentHash, count: RefreshToken.hashBytes),
        .time("createdAt", \.createdAt),
        .optionalBytes("previous", \.previousHash, count: RefreshToken.hashBytes),
        .time("rotatedAt", \.rotatedAt),
        .optional("earlierUses", \.earlierUses),
        .optional("lateInARow", \.lateInARow),
        .flag("isLate", \.isLate))
}
