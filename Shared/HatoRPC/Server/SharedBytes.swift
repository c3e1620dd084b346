import NIOCore
import Synchronization

/// A text that is sent to several connections from one buffer. While it exists, and from the first time it is sent, it
/// is charged once to the budget of the process, however many connections have not taken it yet.
final class SharedBytes: Sendable {
    private static let lastNumber = Atomic<UInt64>(0)

    /// Unique in the process.
    let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
    let buffer: ByteBuffer
    private let charge = Mutex<EventCharge?>(nil)

    init(_ bytes: [UInt8]) { buffer = ByteBuffer(bytes: bytes) }

    var count: Int { buffer.readableBytes }

    /// False when it does not fit into the budget.
    func isCharged(to budget: ProcessBudget) -> Bool {
        charge.withLock { charge in
            if charge == nil { charge = budget.chargeEvent(count) }
            return charge != nil
        }
    }
}
