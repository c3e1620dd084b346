/// How long a client takes over the message that it has begun. Pure: times are milliseconds of any clock.
///
/// A frame that is not complete is a part of a message, whatever it carries.
public struct UnfinishedMessage: Sendable, Hashable {
    /// Bytes of the frame that is not complete.
    public private(set) var frameBytes = 0
    /// Nil between messages.
    private var began: Int64?
    /// Nil while the client is read.
    private var pausedAt: Int64?

    /// Between two messages.
    public init() {}

    /// Bytes have come.
    ///
    /// - Parameter frameBytes: of the frame that is not complete.
    public mutating func heard(frameBytes: Int, at now: Int64) {
        self.frameBytes = frameBytes
        if frameBytes > 0, began == nil { began = now }
    }

    /// A frame is complete.
    ///
    /// - Parameter heldBytes: of the message that it belongs to and that is not complete.
    public mutating func frameEnded(heldBytes: Int, at now: Int64) {
        guard heldBytes == 0 else {
            began = began ?? now
            return
        }
        began = frameBytes > 0 ? now : nil
    }

    /// The client is not read for a while, or read again: what it cannot say then is not its fault.
    public mutating func inputChanged(isPaused: Bool, at now: Int64) {
        if isPaused {
            pausedAt = pausedAt ?? now
        } else if let start = pausedAt {
            began = began.map { $0 + max(0, now - max($0, start)) }
            pausedAt = nil
        }
    }

    /// Milliseconds for which the client was read since the message began; 0 between messages.
    public func age(at now: Int64) -> Int64 { began.map { max(0, (pausedAt ?? now) - $0) } ?? 0 }
}
