import NIOCore

/// Decides which reads an event loop runs itself, without the way to a reader's thread and back. Pure.
///
/// At most one in each turn of the loop, so that everything else waits for one short read only; none after a turn with
/// several, which threads share better; and none for a while after one that took long.
struct LoopReads {
    /// None should take so long.
    private static let timeMax = TimeAmount.milliseconds(4)
    /// After one that did, for so many times its time none runs.
    private static let pauseFactor: Int64 = 100
    private static let pauseMax = TimeAmount.seconds(5)

    /// How many have asked in this turn, and whether several did in the one before.
    private var count = 0
    private var wereSeveral = false
    private var began = NIODeadline.uptimeNanoseconds(0)
    private var pausedUntil = NIODeadline.uptimeNanoseconds(0)

    /// Whether it is the first in this turn: then `turnEnded` is to be called after the turn.
    var isFirst: Bool { count == 1 }

    /// Whether a read may run now.
    mutating func mayRun(at now: NIODeadline) -> Bool {
        count += 1
        began = now
        return count == 1 && !wereSeveral && now >= pausedUntil
    }

    /// The read that could run has run.
    mutating func hasRun(at now: NIODeadline) {
        let time = now - began
        guard time >= Self.timeMax else { return }
        pausedUntil = now + min(Self.pauseMax, min(time, Self.pauseMax) * Int(Self.pauseFactor))
    }

    mutating func turnEnded() {
        wereSeveral = count > 1
        count = 0
    }
}
