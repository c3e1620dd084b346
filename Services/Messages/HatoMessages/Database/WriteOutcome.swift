import HatoModel
import HatoTree

/// The result of a write, without the version at which it is durable.
struct WriteOutcome: Sendable {
    /// Of the written node, when the write had an etag as its condition.
    var etag: String?
    /// Of a push that was there already.
    var repeated: RepeatedPush?
    /// The nodes that the write has put there, in the order of the request; nil: the response does not show them.
    var written: [TreeNode]?
}

/// A push that an earlier try has written. Its response is that of the first try, version and all, so that version is
/// looked for in the kept commits: on a reader's thread, because other writes would wait meanwhile.
struct RepeatedPush: Sendable {
    private let path: TreePath
    /// Only a push of the caller's own counts.
    private let isOwn: Bool
    private let history: CommitHistory

    /// Nil for a mutation that is no push with a key of the client's.
    init?(_ mutation: Mutation, isOwn: Bool, in history: CommitHistory) throws {
        guard case .push(_, let key, isClientKey: true) = mutation.operation else { return nil }
        path = try mutation.path.child(TreeKey(key))
        self.isOwn = isOwn
        self.history = history
    }

    /// The node that the first try has written at this version; nil when its change is not kept any more.
    func firstNode(at version: UInt64) throws -> TreeNode? { try history.node(created: path, at: version) }

    /// The version of the first try; nil when that is not known any more.
    ///
    /// - Parameter version: at which the response is durable: what came later was no first try.
    func firstVersion(upTo version: UInt64) throws -> UInt64? {
        try history.version(pushedAt: path, upTo: version, isOwn: isOwn)
    }
}
