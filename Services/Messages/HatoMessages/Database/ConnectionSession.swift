import Synchronization

/// What this service remembers of one connection: how many of its writes are on their way.
final class ConnectionSession: Sendable {
    private let pendingWrites = Atomic<Int>(0)

    /// Whether a snapshot taken now may lack a write that was submitted.
    var hasPendingWrites: Bool { pendingWrites.load(ordering: .acquiring) > 0 }

    /// Called before a write is submitted.
    func writeBegan() { pendingWrites.wrappingAdd(1, ordering: .relaxed) }

    /// Called when a write is durable and published, or was refused.
    func writeEnded() { pendingWrites.wrappingSubtract(1, ordering: .releasing) }
}
