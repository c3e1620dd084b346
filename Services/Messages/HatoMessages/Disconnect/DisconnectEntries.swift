import HatoModel
import HatoRPC
import HatoStorage
import HatoTree
import Synchronization

typealias OwnedTree = DisconnectTree<DisconnectOwner>

/// The onDisconnect writes of one connection.
///
/// Trees are changed in write closures only, which run in the order of the lines of the connection. So writes are
/// registered, cancelled and made in that order, and authorised by the rules that were set before them. Owners are
/// looked up on the connection's event loop.
///
/// Every change is part of the commit of its closure (`DisconnectRecord`): a call gets its response when its write
/// would survive the process, and a write that is made at the end is deleted from here in the same commit.
final class DisconnectEntries: Sendable {
    struct KeptTree {
        var database: DatabaseID
        var tree: OwnedTree
    }

    private struct WeakOwner {
        weak var owner: DisconnectOwner?
    }

    /// An owner that is in the store.
    private struct StoredOwner {
        /// How many rows say that they are left in this name.
        var rows = 0
        /// Nil: not stored yet.
        var caller: Caller?
    }

    private struct State {
        var trees: [DatabaseName: KeptTree] = [:]
        /// Those that something refers to; few.
        var owners: [WeakOwner] = []
        var numbers = OwnerNumbers()
        var stored: [DisconnectOwner: StoredOwner] = [:]
        var charges: DisconnectTotals.Charges = [:]
    }

    private let connection: UInt64
    private let state: Mutex<State>
    private let totals: DisconnectTotals
    private let changed: @Sendable (DisconnectEntries, DisconnectOwner, RPCIdentityWork?) -> Void

    /// - Parameter changed: called on the connection's event loop when an owner's row may have to be written anew.
    init(
        of connection: UInt64, totals: DisconnectTotals,
        changed: @escaping @Sendable (DisconnectEntries, DisconnectOwner, RPCIdentityWork?) -> Void
    ) {
        self.connection = connection
        self.totals = totals
        self.changed = changed
        state = Mutex(State())
    }

    /// What a connection of a process that is gone has left in the store.
    init(of connection: UInt64, _ trees: [DatabaseName: KeptTree], totals: DisconnectTotals) {
        self.connection = connection
        self.totals = totals
        changed = { _, _, _ in }
        var state = State()
        state.trees = trees
        for entry in trees.values.flatMap(\.tree.entries) {
            state.stored[entry.owner, default: StoredOwner(caller: entry.owner.caller)].rows += 1
        }
        for kept in trees.values { totals.keep(kept.tree) }
        self.state = Mutex(state)
    }

    /// In whose name a request is made.
    func owner(of context: RPCContext) -> DisconnectOwner {
        let known = state.withLock { state in
            state.owners.removeAll { $0.owner == nil }
            return state.owners.compactMap(\.owner)
        }
        if let owner = known.first(where: { $0.adopt(context) }) { return owner }
        let number = state.withLock { state in
            let stored = state.stored
            return state.numbers.next { number in
                known.contains { $0.number == number } || stored.keys.contains { $0.number == number }
            }
        }
        let owner = DisconnectOwner(context, number: number) { [weak self] owner, work in
            if let self { changed(self, owner, work) }
        }
        state.withLock { $0.owners.append(WeakOwner(owner: owner)) }
        return owner
    }

    /// In a write closure, after its reads. When the tree would grow over a limit it stays as it was.
    ///
    /// - Parameter client: The caller's client; nil: an administrator.
    func change(
        of database: Database, by client: String?, in transaction: any StoreTransaction,
        _ body: (inout OwnedTree) throws(MessagesError) -> [DisconnectStep<DisconnectOwner>]
    ) throws(MessagesError) {
        let kept = state.withLock { $0.trees[database.name] }
        // Under an old name a new database may stand.
        let isOld = kept.map { $0.database != database.id } ?? false
        let before = isOld ? OwnedTree() : kept?.tree ?? OwnedTree()
        var tree = before
        let steps = try body(&tree)
        let others = state.withLock { state in
            state.trees.filter { $0.key != database.name }.values.map(\.tree)
        }
        let limits = totals.limits
        if tree.count > before.count || tree.byteCount > before.byteCount {
            guard others.reduce(tree.count, { $0 + $1.count }) <= limits.onDisconnectEntriesMax else {
                throw .tooManyOnDisconnect(max: limits.onDisconnectEntriesMax)
            }
            guard others.reduce(tree.byteCount, { $0 + $1.byteCount }) <= limits.onDisconnectBytesMax else {
                throw .onDisconnectTooBig(bytesMax: limits.onDisconnectBytesMax)
            }
        }
        try state.withLock { state throws(MessagesError) in
            try totals.replace(kept?.tree ?? OwnedTree(), by: tree, for: client, &state.charges)
        }
        let changed = tree.isEmpty ? nil : KeptTree(database: database.id, tree: tree)
        state.withLock { $0.trees[database.name] = changed }
        if let kept, isOld {
            store(kept.tree.entries.map(\.removal), of: kept.database, in: transaction)
        }
        store(steps, of: database.id, in: transaction)
    }

    /// In a write closure, once: takes everything. Its rows stay until `wrote`.
    func takeAll() -> [DisconnectWrite] {
        let (trees, charges) = state.withLock { state in
            defer { (state.trees, state.charges) = ([:], [:]) }
            return (state.trees.sorted { $0.key.rawValue < $1.key.rawValue }, state.charges)
        }
        totals.end(charges)
        return trees.flatMap { name, kept in
            totals.forget(kept.tree)
            return kept.tree.batches.map { DisconnectWrite(name: name, database: kept.database, batch: $0) }
        }
    }

    // MARK: Rows

    /// In the closure that writes what was taken, or drops it: its rows go.
    func wrote(_ write: DisconnectWrite, in transaction: any StoreTransaction) {
        store(write.batch.removals, of: write.database, in: transaction)
    }

    /// In a write closure: stores the current identity of an owner.
    func store(_ owner: DisconnectOwner, in transaction: any StoreTransaction) {
        store([owner], in: transaction)
    }

    private func store(
        _ steps: [DisconnectStep<DisconnectOwner>], of database: DatabaseID, in transaction: any StoreTransaction
    ) {
        var rows: [TreePath: DisconnectEntry<DisconnectOwner>?] = [:]
        var amendments: [UInt64: DisconnectAmendment?] = [:]
        var owners: Set<DisconnectOwner> = []
        state.withLock { state in
            for step in steps {
                switch step {
                case .removed(let path, let owner, let numbers):
                    rows[path] = .some(nil)
                    for number in numbers { amendments[number] = .some(nil) }
                    state.stored[owner]?.rows -= 1
                    owners.insert(owner)
                case .added(let entry):
                    rows[entry.write.path] = entry
                    state.stored[entry.owner, default: StoredOwner()].rows += 1
                    owners.insert(entry.owner)
                case .amended(let amendment): amendments[amendment.number] = amendment
                }
            }
        }
        for (path, entry) in rows {
            let key = DisconnectRecord.key(ofEntryAt: path, in: database, connection: connection)
            if let entry {
                transaction.put(key, DisconnectRecord.entry(entry.write.node, by: entry.owner.number))
            } else {
                transaction.delete(key.span)
            }
        }
        for (number, amendment) in amendments {
            let key = DisconnectRecord.key(ofAmendment: number, in: database, connection: connection)
            if let amendment {
                transaction.put(key, DisconnectRecord.amendment(amendment))
            } else {
                transaction.delete(key.span)
            }
        }
        store(owners, in: transaction)
    }

    private func store(_ owners: Set<DisconnectOwner>, in transaction: any StoreTransaction) {
        for owner in owners {
            let caller = owner.caller
            guard let stored = state.withLock({ $0.stored[owner] }) else { continue }
            let key = DisconnectRecord.key(ofCaller: owner.number, connection: connection)
            if stored.rows == 0 {
                if stored.caller != nil { transaction.delete(key.span) }
                state.withLock { $0.stored[owner] = nil }
            } else if stored.caller != caller {
                transaction.put(key, DisconnectRecord.caller(caller))
                state.withLock { $0.stored[owner]?.caller = caller }
            }
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
