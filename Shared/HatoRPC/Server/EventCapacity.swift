/// Decides which events that connections share may be in memory, and which connections go on when memory is free. Pure.
///
/// Events take `processEventBytesMax` at most, so that peers that do not read leave memory for requests; one event may
/// always be there, however large, so that it goes on. Connections that were refused wait in the order in which
/// they came; all that were refused the same event go on together, for they will share the next one as well.
struct EventCapacity: Sendable {
    private struct Waiter {
        var count: Int
        /// Stands for the event that was refused.
        var event: UInt64
        var resume: @Sendable () -> Void
    }

    /// What events take at most.
    let bytesMax: Int
    private(set) var bytes = 0
    private var waiters: [UInt64: Waiter] = [:]
    /// Connections by their turn.
    private var turns = IndexedHeap<UInt64, UInt64>()
    private var lastTurn: UInt64 = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    var isAwaited: Bool { !waiters.isEmpty }

    /// Whether another connection than this one waits.
    func isAwaited(butBy connection: UInt64) -> Bool { waiters.count > (waiters[connection] == nil ? 0 : 1) }

    /// - Parameter free: bytes of the process's budget that nothing takes.
    func fits(_ count: Int, free: Int) -> Bool {
        bytes == 0 || count <= min(bytesMax - bytes, free)
    }

    /// False when it does not fit; nothing is counted then.
    mutating func charge(_ count: Int, free: Int) -> Bool {
        guard fits(count, free: free) else { return false }
        bytes += count
        return true
    }

    mutating func endCharge(_ count: Int) { bytes -= count }

    /// A connection waits for memory for an event of `count` bytes; it keeps its turn when it waits already.
    mutating func wait(
        _ connection: UInt64, for count: Int, of event: UInt64, resume: @escaping @Sendable () -> Void
    ) {
        waiters[connection] = Waiter(count: count, event: event, resume: resume)
        guard !turns.contains(connection) else { return }
        lastTurn += 1
        turns.insert(connection, lastTurn)
    }

    mutating func stopWaiting(_ connection: UInt64) {
        waiters[connection] = nil
        turns.remove(connection)
    }

    /// The callbacks of connections that need not wait any more, which are forgotten.
    mutating func takeReady(free: Int) -> [@Sendable () -> Void] {
        var left = bytes == 0 ? Int.max : min(bytesMax - bytes, free)
        var events: Set<UInt64> = []
        var ready: [@Sendable () -> Void] = []
        while let (connection, _) = turns.first, let waiter = waiters[connection] {
            if !events.contains(waiter.event) {
                guard waiter.count <= left else { break }
                // The first of all may be of any size.
                left = (left == .max ? min(bytesMax, free) : left) - waiter.count
                events.insert(waiter.event)
            }
            ready.append(waiter.resume)
            stopWaiting(connection)
        }
        return ready
    }
}
