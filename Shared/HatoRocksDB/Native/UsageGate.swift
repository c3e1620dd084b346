import HatoStorage
import Synchronization

/// Counts users while it is open; closing it waits until all have left.
///
/// The lowest bit says "closed", the other bits count the users: entering and leaving cost one atomic addition each.
final class UsageGate: Sendable {
    private let state = Atomic<Int>(0)
    private let isEmpty = Latch()

    /// Returns false when the gate is closed; then the caller must not continue, and must not call `leave`.
    func enter() -> Bool {
        if state.wrappingAdd(2, ordering: .acquiringAndReleasing).oldValue & 1 == 0 { return true }
        leave()
        return false
    }

    func leave() {
        if state.wrappingSubtract(2, ordering: .acquiringAndReleasing).newValue == 1 { isEmpty.open() }
    }

    /// Closes the gate and waits until all users have left. Returns false when it was closed before.
    func close() -> Bool {
        let before = state.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue
        if before & 1 == 1 { return false }
        if before == 0 { isEmpty.open() }
        isEmpty.wait()
        return true
    }
}
