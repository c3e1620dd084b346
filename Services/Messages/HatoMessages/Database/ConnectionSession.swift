import Synchronization

/// The state of one connection in this service: the number of its pending writes, and the order of its writes and of
/// the reads among them.
final class ConnectionSession: Sendable {
    /// Of the connection; nil for one that ended with an earlier process.
    let id: UInt64?
    /// The client in whose turns its writes are planned; nil: the service, for administrators. It never changes, even
    /// if the connection gets the credential of another user: so its writes keep their order.
    let client: String?
    private let pendingWrites = Atomic<Int>(0)

    /// A write, or a read at its place among them, that waits for its turn.
    private enum Turn {
        case run(@Sendable () -> Void)
        /// Keeps the turn until `release`.
        case hold(@Sendable () -> Void)
    }

    private struct Turns {
        /// Whether a write holds the turn; what came after it waits.
        var isHeld = false
        var waiting: [Turn] = []
    }

    private let turns = Mutex(Turns())
    /// Called whenever a write begins to hold the turn, or no longer does.
    private let turnChanged: @Sendable (_ isHeld: Bool) -> Void

    init(of connection: UInt64?, client: String?, turnChanged: @escaping @Sendable (_ isHeld: Bool) -> Void = { _ in })
    {
        id = connection
        self.client = client
        self.turnChanged = turnChanged
    }

    /// Whether a snapshot taken now may lack a write that was submitted.
    var hasPendingWrites: Bool { pendingWrites.load(ordering: .acquiring) > 0 }

    /// Called before a write is submitted.
    func writeBegan() { pendingWrites.wrappingAdd(1, ordering: .relaxed) }

    /// Called when a write is durable and published, or was refused.
    func writeEnded() { pendingWrites.wrappingSubtract(1, ordering: .releasing) }

    // MARK: Turns

    // The writes of a connection reach the store in the order of their lines. One that is looked at first, on another
    // thread, holds the turn meanwhile: what came after it waits. Turns are asked for on the connection's event loop
    // only, one after the other.

    /// Whether the queue of the store may be used at once.
    var isFree: Bool { turns.withLock { !$0.isHeld } }

    /// Runs `body` when the turn is free: now, on this thread, if it is free.
    func inTurn(_ body: @escaping @Sendable () -> Void) {
        let isFree = turns.withLock { turns -> Bool in
            if turns.isHeld { turns.waiting.append(.run(body)) }
            return !turns.isHeld
        }
        if isFree { body() }
    }

    /// The same for a body that keeps the turn until `release` is called, once.
    func holdingTurn(_ body: @escaping @Sendable () -> Void) {
        let isFree = turns.withLock { turns -> Bool in
            if turns.isHeld {
                turns.waiting.append(.hold(body))
                return false
            }
            turns.isHeld = true
            turnChanged(true)
            return true
        }
        if isFree { body() }
    }

    /// Lets those run who waited, until one of them holds the turn again.
    func release() {
        while true {
            let next = turns.withLock { turns -> Turn? in
                if turns.waiting.isEmpty {
                    turns.isHeld = false
                    turnChanged(false)
                    return nil
                }
                return turns.waiting.removeFirst()
            }
            switch next {
            case nil: return
            case .run(let body)?: body()
            case .hold(let body)?: return body()
            }
        }
    }
}
