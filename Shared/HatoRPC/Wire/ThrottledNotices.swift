public import Logging
import Synchronization

/// Decides which of the notices of one kind are logged: at most one a second.
public struct NoticeThrottle: Sendable, Hashable {
    /// The shortest time between two notices of one kind.
    public static let interval = Duration.seconds(1)

    private var last: Duration?
    private var leftOut = 0

    public init() {}

    /// The event of a notice. Returns nil when it is left out, else how many were left out since the last one that was
    /// not. `now` goes forward only, from wherever it began.
    public mutating func occurred(at now: Duration) -> Int? {
        if let last, now - last < Self.interval {
            leftOut &+= 1
            return nil
        }
        last = now
        defer { leftOut = 0 }
        return leftOut
    }
}

/// Logs what any peer can cause, each kind at most once a second: a flood of bad peers is not one of the
/// log. A notice says how many of its kind were left out before it (`leftOut`).
///
/// The throttles are behind the mutex; any thread calls.
public final class ThrottledNotices: Sendable {
    /// What a notice is about; each is written at most once a second.
    public enum Kind: Sendable, Hashable {
        case http
        case refused
        case closedForAnother
        case failedHandshake
        case failedAccept
        case failedRequest
        case unansweredRequest
        case failedVerification
        case reusedRefreshToken
        case refusedByStore
        case mailNotSent
        case unwrittenOnDisconnect
        case cancelledListeners
        case pausedQueue
        case misconfiguredApp
        case stoppedQueue
        case unleasedDeliveries
        case unrecordedAttempt
        case undroppedDeliveries
        case fullOutbox
        case trigger(String)
        /// All kinds beyond the first `kindsMax`, which share one notice a second.
        case further
    }

    /// The kinds, each throttled by itself.
    static let kindsMax = 1_000

    private let logger: Logger
    private let throttles = Mutex<[Kind: NoticeThrottle]>([:])
    private let start = ContinuousClock.now

    public init(_ logger: Logger) { self.logger = logger }

    /// Logs unless one of its kind was logged within the last second.
    public func notice(
        _ kind: Kind, _ message: @autoclosure () -> Logger.Message, _ metadata: @autoclosure () -> Logger.Metadata,
        level: Logger.Level = .notice
    ) {
        guard logger.logLevel <= level else { return }
        let now = ContinuousClock.now - start
        let leftOut = throttles.withLock { throttles in
            let isFurther = throttles[kind] == nil && throttles.count >= Self.kindsMax
            return throttles[isFurther ? .further : kind, default: NoticeThrottle()].occurred(at: now)
        }
        guard let leftOut else { return }
        var all = metadata()
        if leftOut > 0 { all["leftOut"] = "\(leftOut)" }
        logger.log(level: level, message(), metadata: all)
    }
}
