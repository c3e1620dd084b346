import Foundation
import Synchronization

/// Calls at a steady pace from one thread, while something else goes on. The delay of each counts from the moment it
/// was due.
enum PacedCalls {
    /// Set when the other thing is over.
    final class End: Sendable {
        private let isOver = Atomic(false)

        var hasCome: Bool { isOver.load(ordering: .sequentiallyConsistent) }

        func come() { isOver.store(true, ordering: .sequentiallyConsistent) }
    }

    static func window(_ perSecond: Int, until end: End, _ call: (_ number: Int) throws -> Void) throws -> Window {
        let interval = UInt64(1_000_000_000 / perSecond)
        var latencies: [UInt32] = []
        let start = Clock.now()
        while !end.hasCome {
            let due = start + UInt64(latencies.count) * interval
            let now = Clock.now()
            if due > now { Thread.sleep(forTimeInterval: Double(due - now) / 1e9) }
            try call(latencies.count)
            let after = Clock.now()
            latencies.append(UInt32(clamping: (after - min(due, after)) / 1_000))
        }
        return Window(seconds: Double(Clock.now() - start) / 1e9, latencies: latencies)
    }
}
