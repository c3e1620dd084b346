import HatoModel
import Synchronization

/// The etags of large nodes that were hashed for a precondition, until something in them changes.
///
/// It stays right for the reason that `ParentMemory` does: every write of the database is planned with it, in the order
/// of application. A plan that is then not applied can but make it forget.
final class EtagMemory: Sendable {
    /// Smaller nodes are hashed each time, and told to whoever named a wrong etag.
    static let smallBytesMax = 1024 * 1024
    private static let countMax = 64
    private static let comparisonsMax = 4_096

    private let etags = Mutex<[TreePath: String]>([:])

    func etag(at path: TreePath) -> String? { etags.withLock { $0[path] } }

    /// Begins anew when it is full.
    func remember(_ etag: String, at path: TreePath) {
        etags.withLock { etags in
            if etags.count >= Self.countMax { etags = [:] }
            etags[path] = etag
        }
    }

    func forget(_ changes: [PathChange]) {
        etags.withLock { etags in
            if etags.isEmpty { return }
            // Each is compared with each, and every other write waits meanwhile.
            if etags.count * changes.count > Self.comparisonsMax { return etags = [:] }
            etags = etags.filter { entry in
                !changes.contains {
                    entry.key.node.isAtOrAbove($0.path.node) || $0.path.node.isAtOrAbove(entry.key.node)
                }
            }
        }
    }
}
