import HatoIdentity
import HatoModel

/// When a refresh token is accepted again, and when a session expires.
public struct RefreshPolicy: Sendable, Hashable {
    /// A token that was just used returns the same successor again: the response was lost, or two tabs refreshed (spec
    /// auth §9).
    public var graceSeconds: Int64 = 30
    /// A session expires when it is not refreshed for this long.
    public var idleSeconds: Int64 = 30 * 86_400
    /// A session expires this long after the sign-in, however used; 0: never.
    public var absoluteSeconds: Int64 = 0

    public init() {}
}

/// Decides the result of presenting a refresh token of one session.
///
/// Every token is valid once and returns its successor. Presented again within the grace window it returns the same
/// successor, so a lost response neither loses the session nor creates a second one. Presented later, or an older
/// token, ends the session for all holders, because then two clients hold it and one of them stole it (RFC 9700
/// §4.14.2).
///
/// It holds hashes only. The successor of a token is a function of the token and a secret, so it need not be stored to
/// be returned again.
struct RefreshRotationStateMachine: Sendable, Hashable {
    enum Action: Hashable {
        /// The session continues with the successor; write this state before responding.
        case rotate
        /// Respond with the same successor; nothing changes.
        case repeatSuccessor
        /// The token may have been copied: end the session.
        case endReused
        /// Expired: end the session.
        case endExpired
    }

    private(set) var currentHash: [UInt8]
    var previousHash: [UInt8]?
    private(set) var createdAt: Int64
    /// The time of issue of the current token.
    var rotatedAt: Int64

    /// - Parameter createdAt: milliseconds, as all times here.
    init(currentHash: [UInt8], createdAt: Int64) {
        self.currentHash = currentHash
        self.createdAt = createdAt
        rotatedAt = createdAt
    }

    /// A token of this session was presented; both hashes are those of `RefreshToken`.
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

    /// Whether the token is the current one, or the one before it, whose successor its holder may not have received.
    func isHeld(_ hash: [UInt8]) -> Bool {
        ConstantTime.isSame(hash, currentHash) || previousHash.map { ConstantTime.isSame(hash, $0) } ?? false
    }

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
        .time("rotatedAt", \.rotatedAt))
}
