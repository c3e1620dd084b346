/// When the clients of sessions are sent away at the end of a gateway: one after the other, so that they do not all
/// come back at the same instant.
enum Departures {
    /// Between two of an event loop, when there are few; in nanoseconds.
    private static let pauseMax: Int64 = 5_000_000

    /// The nanoseconds between two of so many, the last of which leaves before `time` nanoseconds are over.
    static func pause(count: Int, within time: Int64) -> Int64 {
        min(max(0, time) / Int64(max(1, count)), pauseMax)
    }
}
