import Synchronization

/// How many connections of clients there are, over all event loops.
final class ConnectionRoom: Sendable {
    private let max: Int
    private let count = Atomic(0)

    init(max: Int) { self.max = max }

    /// Takes the place of one more; false when there is none.
    func take() -> Bool {
        guard count.wrappingAdd(1, ordering: .relaxed).newValue > max else { return true }
        leave()
        return false
    }

    /// One has ended.
    func leave() { count.wrappingSubtract(1, ordering: .relaxed) }
}
