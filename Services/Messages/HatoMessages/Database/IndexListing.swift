import HatoModel
import HatoRules
import HatoStorage
import HatoTree
import Synchronization

/// How many rows the indexes have. Up to 10,000 they are counted each time; more are counted once a minute at most (of an
/// index that is being built, every five seconds), whoever asks, since that reads all of them.
final class IndexCounts: Sendable {
    private struct Key: Hashable {
        var database: DatabaseID
        var index: UInt32
        var isReady: Bool
    }

    private struct Count {
        var entries: Int
        var at: Int64
    }

    private static let countedEachTime = 10_000
    private static let keptMs: Int64 = 60_000
    private static let keptWhileBuildingMs: Int64 = 5_000

    private let counts = Mutex<[Key: Count]>([:])
    /// Milliseconds since 1970.
    private let now: @Sendable () -> Int64

    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    /// On a reader's thread.
    func entries(of index: IndexCatalog.Index, in database: Database, _ snapshot: any StoreSnapshot) throws -> Int {
        let reader = StoreTreeReader(snapshot)
        let few = try database.indexCodec.count(index.definition, reading: reader, limit: Self.countedEachTime)
        if few < Self.countedEachTime { return few }
        let key = Key(database: database.id, index: index.definition.id, isReady: index.isReady)
        let time = now()
        let keptMs = index.isReady ? Self.keptMs : Self.keptWhileBuildingMs
        if let kept = counts.withLock({ $0[key] }), time - kept.at < keptMs { return kept.entries }
        let all = try database.indexCodec.count(index.definition, reading: reader, limit: .max)
        counts.withLock { counts in
            counts = counts.filter { time - $0.value.at < Self.keptMs }
            counts[key] = Count(entries: all, at: time)
        }
        return all
    }
}

/// Tells an operator about the indexes of a database.
struct IndexListing {
    let database: Database
    let snapshot: any StoreSnapshot
    let counts: IndexCounts

    func list() throws -> [Messages.Indexes.Index] {
        try database.indexes.indexes.map { index in
            let entries = try counts.entries(of: index, in: database, snapshot)
            return Messages.Indexes.Index(
                pattern: index.definition.pattern.description, on: index.definition.on,
                state: index.isReady ? .ready : .building, entries: UInt64(entries), progress: try progress(index))
        }
    }

    /// How far the build has come through the rows of the tree that may lie in its collections, judged by where its cursor
    /// stands between the first and the last of them.
    private func progress(_ index: IndexCatalog.Index) throws -> Double {
        guard case .building(let cursor) = index.state else { return 1 }
        let range = KeyRange(prefix: database.codec.key(of: index.definition.trunk))
        guard let cursor, let first = try firstKey(range, reverse: false), let last = try firstKey(range, reverse: true)
        else { return 0 }
        var shared = 0
        while shared < min(first.count, last.count), first[shared] == last[shared] { shared += 1 }
        let low = Self.place(first, after: shared)
        let high = Self.place(last, after: shared)
        guard high > low else { return 0 }
        return min(0.99, max(0, (Self.place(cursor.row, after: shared) - low) / (high - low)))
    }

    private func firstKey(_ range: KeyRange, reverse: Bool) throws -> [UInt8]? {
        var found: [UInt8]?
        try snapshot.scan(range, reverse: reverse) { key, _ in
            found = key.withUnsafeBufferPointer { Array($0) }
            return .stop
        }
        return found
    }

    /// Six bytes as a number.
    private static func place(_ key: [UInt8], after count: Int) -> Double {
        var place = 0.0
        for index in count..<count + 6 { place = place * 256 + (index < key.count ? Double(key[index]) : 0) }
        return place
    }
}
