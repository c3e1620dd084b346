import HatoModel
import HatoRPC

/// The time of day and waiting for one; a parameter, so that tests decide what time it is.
public struct TimeSource: Sendable {
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64
    /// Returns at or soon after this time, or throws when cancelled. May return early when the clock is set.
    public var sleepUntil: @Sendable (Int64) async throws -> Void

    public init() {
        now = WallClock.milliseconds
        sleepUntil = { time in
            let wait = time - WallClock.milliseconds()
            if wait > 0 { try await Task.sleep(for: .milliseconds(wait)) }
        }
    }

    /// A source of given functions: the time in milliseconds since 1970, and a wait for a time.
    public init(now: @escaping @Sendable () -> Int64, sleepUntil: @escaping @Sendable (Int64) async throws -> Void) {
        self.now = now
        self.sleepUntil = sleepUntil
    }

    func sleep(for duration: Duration) async throws { try await sleepUntil(now() + duration.milliseconds) }
}
