import Foundation
import Synchronization

/// Measures the resident memory of a process every 20 ms, on a thread of its own.
final class MemoryWatch: Sendable {
    private let process: Int32
    private let highest = Atomic(0)
    private let isOver = Atomic(false)
    /// The memory at the beginning.
    let first: Int

    init(_ process: Int32) throws {
        self.process = process
        first = try ResidentMemory.bytes(of: process)
        Thread.detachNewThread { [self] in
            while !isOver.load(ordering: .sequentiallyConsistent) {
                look()
                Thread.sleep(forTimeInterval: 0.02)
            }
        }
    }

    /// The largest growth since the beginning.
    func growth() -> Int {
        isOver.store(true, ordering: .sequentiallyConsistent)
        look()
        return max(0, highest.load(ordering: .sequentiallyConsistent) - first)
    }

    private func look() {
        // A process that has ended has no memory to measure.
        guard let bytes = try? ResidentMemory.bytes(of: process) else { return }
        highest.max(bytes, ordering: .sequentiallyConsistent)
    }
}
