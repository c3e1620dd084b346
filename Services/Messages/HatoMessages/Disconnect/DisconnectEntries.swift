import HatoModel
import HatoRPC
import HatoTree
import Synchronization

typealias OwnedTree = DisconnectTree<DisconnectOwner>

/// What one connection has left to be written when it ends.
///
/// Trees are changed in write closures only, which run in the order of the lines of the connection: what is registered,
/// taken back and at last written is what a reader of those lines would expect, and it is judged by the rules that were
/// set before it. Owners are looked up on the connection's event loop.
final class DisconnectEntries: Sendable {
    private struct KeptTree {
        var database: DatabaseID
        var tree: OwnedTree
    }

    private struct WeakOwner {
        weak var owner: DisconnectOwner?
    }

    private struct State {
        var trees: [DatabaseName: KeptTree] = [:]
        /// Those that something refers to; few.
        var owners: [WeakOwner] = []
    }

    private let state = Mutex(State())
    private let totals: DisconnectTotals

    init(totals: DisconnectTotals) { self.totals = totals }

    /// In whose name a request is made.
    func owner(of context: RPCContext) -> DisconnectOwner {
        let known = state.withLock { state in
            state.owners.removeAll { $0.owner == nil }
            return state.owners.compactMap(\.owner)
        }
        if let owner = known.first(where: { $0.adopt(context) }) { return owner }
        let owner = DisconnectOwner(context)
        state.withLock { $0.owners.append(WeakOwner(owner: owner)) }
        return owner
    }

    /// In a write closure. When the tree would grow over a limit it stays as it was.
    func change(
        of database: Database, within limits: MessagesLimits, _ body: (inout OwnedTree) -> Void
    ) throws(MessagesError) {
        let kept = state.withLock { $0.trees[database.name] }
        // Under an old name a new database may stand.
        let before = kept.flatMap { $0.database == database.id ? $0.tree : nil } ?? OwnedTree()
        var tree = before
        body(&tree)
        let others = state.withLock { state in
            state.trees.filter { $0.key != database.name }.values.map(\.tree)
        }
        if tree.count > before.count || tree.byteCount > before.byteCount {
            guard others.reduce(tree.count, { $0 + $1.count }) <= limits.onDisconnectEntriesMax else {
                throw .tooManyOnDisconnect(max: limits.onDisconnectEntriesMax)
            }
            guard others.reduce(tree.byteCount, { $0 + $1.byteCount }) <= limits.onDisconnectBytesMax else {
                throw .onDisconnectTooBig(bytesMax: limits.onDisconnectBytesMax)
            }
        }
        try totals.replace(kept?.tree ?? OwnedTree(), by: tree, bytesMax: limits.onDisconnectServiceBytesMax)
        let changed = tree.isEmpty ? nil : KeptTree(database: database.id, tree: tree)
        state.withLock { $0.trees[database.name] = changed }
    }

    /// In a write closure, once: takes everything.
    func takeAll() -> [DisconnectWrite] {
        let trees = state.withLock { state in
            defer { state.trees = [:] }
            return state.trees.sorted { $0.key.rawValue < $1.key.rawValue }
        }
        return trees.flatMap { name, kept in
            totals.forget(kept.tree)
            return kept.tree.batches.map { DisconnectWrite(name: name, database: kept.database, batch: $0) }
        }
    }
}

/// One commit that the end of a connection makes.
struct DisconnectWrite: Sendable {
    var name: DatabaseName
    /// The database it was left for.
    var database: DatabaseID
    var batch: DisconnectBatch<DisconnectOwner>

    var halves: [DisconnectWrite] {
        batch.halves.map { DisconnectWrite(name: name, database: database, batch: $0) }
    }
}

/// What all connections together have left to be written. Changed in write closures only.
final class DisconnectTotals: Sendable {
    private struct State {
        var entries = 0
        var bytes = 0
    }

    private let state = Mutex(State())
    private let metrics: MessagesMetrics

    init(_ metrics: MessagesMetrics) { self.metrics = metrics }

    func replace(_ before: OwnedTree, by after: OwnedTree, bytesMax: Int) throws(MessagesError) {
        let growth = after.byteCount - before.byteCount
        let entries: Int? = state.withLock { state in
            guard growth <= 0 || state.bytes + growth <= bytesMax else { return nil }
            state.bytes += growth
            state.entries += after.count - before.count
            return state.entries
        }
        guard let entries else { throw .onDisconnectFull }
        metrics.keepsOnDisconnect(entries)
    }

    func forget(_ tree: OwnedTree) {
        let entries = state.withLock { state in
            state.bytes -= tree.byteCount
            state.entries -= tree.count
            return state.entries
        }
        metrics.keepsOnDisconnect(entries)
    }
}
