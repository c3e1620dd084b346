/// Whether a client takes what waits for it, looked at now and then while its socket is full. Pure: times are
/// milliseconds of any clock.
public struct OutputProgress: Sendable, Hashable {
    /// Nil while the socket is not full.
    private var fullSince: Int64?
    /// At the last look; 0 before the first one.
    private var waitingBytes = 0

    /// Of a socket that is not full.
    public init() {}

    /// The socket is full, or takes messages again.
    public mutating func changed(isFull: Bool, at now: Int64) {
        guard isFull != (fullSince != nil) else { return }
        (fullSince, waitingBytes) = (isFull ? now : nil, 0)
    }

    /// Returns whether the socket has taken something since the last look.
    ///
    /// - Parameter waitingBytes: what it has not taken.
    public mutating func looked(waitingBytes: Int) -> Bool {
        defer { self.waitingBytes = waitingBytes }
        return waitingBytes < self.waitingBytes
    }

    /// Milliseconds for which the socket has been full without a pause.
    public func age(at now: Int64) -> Int64 { fullSince.map { max(0, now - $0) } ?? 0 }
}
