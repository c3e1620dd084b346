import HatoModel
import Synchronization

/// Caches the etags of large nodes that were hashed for a precondition, until something in them changes.
///
/// It is correct for the same reason as `ParentMemory`: every write of the database is planned with it, in the order of
/// application. A plan that is then not applied can only invalidate entries.
final class EtagMemory: Sendable {
    /// Smaller nodes are hashed each time, and are part of the error for a caller that named a wrong etag. A connection
    /// may have a thousand such errors under way.
    static let smallBytesMax = TreeError.mismatchBytesMax
    private static let countMax = 64
    private static let comparisonsMax = 4_096

    private let etags = Mutex<[TreePath: String]>([:])

    func etag(at path: TreePath) -> String? { etags.withLock { $0[path] } }

    /// Cleared when it is full.
    func remember(_ etag: String, at path: TreePath) {
        etags.withLock { etags in
            if etags.count >= Self.countMax { etags = [:] }
            etags[path] = etag
        }
    }

    func forget(_ changes: [PathChange]) {
        etags.withLock { etags in
            if etags.isEmpty { return }
            // Every entry is compared with every change, and all other writes wait meanwhile.
            if etags.count * changes.count > Self.comparisonsMax { return etags = [:] }
            etags = etags.filter { entry in
                !changes.contains {
                    entry.key.node.isAtOrAbove($0.path.node) || $0.path.node.isAtOrAbove(entry.key.node)
                }
            }
        }
    }
}
