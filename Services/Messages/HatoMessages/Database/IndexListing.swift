import HatoModel
import HatoRules
import HatoStorage
import HatoTree
import Synchronization

/// The numbers of rows of the indexes that are ready. Up to 10,000 rows are counted each time; more are counted once a
/// minute at most for all callers, because that reads all of them.
final class IndexCounts: Sendable {
    private struct Key: Hashable {
        var database: DatabaseID
        var index: UInt32
    }

    private struct Count {
        var entries: Int
        var at: Int64
    }

    private static let countedEachTime = 10_000
    private static let keptMs: Int64 = 60_000

    private let counts = Mutex<[Key: Count]>([:])
    /// Milliseconds since 1970.
    private let now: @Sendable () -> Int64

    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    /// On a reader's thread.
    func entries(of index: IndexDefinition, in database: Database, _ snapshot: any StoreSnapshot) throws -> Int {
        let reader = StoreTreeReader(snapshot)
        let few = try database.indexCodec.count(index, reading: reader, limit: Self.countedEachTime)
        if few < Self.countedEachTime { return few }
        let key = Key(database: database.id, index: index.id)
        let time = now()
        if let kept = counts.withLock({ $0[key] }), time - kept.at < Self.keptMs { return kept.entries }
        let all = try database.indexCodec.count(index, reading: reader, limit: .max)
        counts.withLock { counts in
            counts = counts.filter { time - $0.value.at < Self.keptMs }
            counts[key] = Count(entries: all, at: time)
        }
        return all
    }
}

/// Lists the indexes of a database for an operator.
struct IndexListing {
    let database: Database
    let snapshot: any StoreSnapshot
    let counts: IndexCounts

    func list() throws -> [Messages.Indexes.Index] {
        try database.indexes.indexes.map { index in
            Messages.Indexes.Index(
                pattern: index.definition.pattern.description, on: index.definition.on,
                state: index.isReady ? .ready : .building, entries: UInt64(try entries(index)),
                progress: try progress(index))
        }
    }

    private func entries(_ index: IndexCatalog.Index) throws -> Int {
        switch index.state {
        case .ready: try counts.entries(of: index.definition, in: database, snapshot)
        case .building(let cursor): cursor?.children ?? 0
        }
    }

    /// The part of the rows of the tree that may lie in its collections which the build has passed, by what they take
    /// on the disk: keys say nothing about that, for one of them may lie far from all others.
    private func progress(_ index: IndexCatalog.Index) throws -> Double {
        guard case .building(let cursor) = index.state else { return 1 }
        guard let cursor else { return 0 }
        let whole = KeyRange(prefix: database.codec.key(of: index.definition.trunk))
        let passed = KeyRange(lower: whole.lower, upper: cursor.row)
        var (done, all) = (try snapshot.approximateBytes(of: passed), try snapshot.approximateBytes(of: whole))
        // Nothing of it is in a file yet: then it is little enough to be read.
        if all == 0 { (done, all) = (try snapshot.bytes(of: passed), try snapshot.bytes(of: whole)) }
        return all == 0 ? 0 : min(0.99, Double(done) / Double(all))
    }
}
