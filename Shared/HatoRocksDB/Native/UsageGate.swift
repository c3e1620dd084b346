import HatoStorage
import Synchronization

/// Lets users in while it is open; closing it waits until all are out.
///
/// The lowest bit says "closed", the rest counts those inside: entering and leaving cost one atomic addition each.
final class UsageGate: Sendable {
    private let state = Atomic<Int>(0)
    private let isEmpty = Latch()

    /// False when the gate is closed; then the caller must not go on, nor `leave`.
    func enter() -> Bool {
        if state.wrappingAdd(2, ordering: .acquiringAndReleasing).oldValue & 1 == 0 { return true }
        leave()
        return false
    }

    func leave() {
        if state.wrappingSubtract(2, ordering: .acquiringAndReleasing).newValue == 1 { isEmpty.open() }
    }

    /// Closes the gate and waits for those inside. False when it was closed before.
    func close() -> Bool {
        let before = state.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue
        if before & 1 == 1 { return false }
        if before == 0 { isEmpty.open() }
        isEmpty.wait()
        return true
    }
}
