import HatoModel
import Synchronization

/// Nodes that were too large to be read at once, so that this is not tried for each change: some of one feed, each for
/// some readings, as it can become smaller.
final class LargeNodes: Sendable {
    private static let countMax = 64
    private static let readingsMax = 16

    private let state = Mutex<[TreePath: Int]>([:])

    /// Counts a reading.
    func contains(_ path: TreePath) -> Bool {
        state.withLock { readings in
            guard let left = readings[path] else { return false }
            readings[path] = left > 1 ? left - 1 : nil
            return true
        }
    }

    func insert(_ path: TreePath) {
        state.withLock { readings in
            if readings.count >= Self.countMax, let least = readings.min(by: { $0.value < $1.value }) {
                readings[least.key] = nil
            }
            readings[path] = Self.readingsMax
        }
    }
}
