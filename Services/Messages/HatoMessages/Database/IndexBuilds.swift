import HatoModel
import HatoStorage
import HatoTree
import Logging
import Synchronization

/// Builds new indexes in the background, a page a commit, while writes go on between the pages.
///
/// How far a build has come is stored with each page, so after a restart it goes on where it was. One database builds
/// one index at a time; each page is queued when the one before is durable.
final class IndexBuilds: Sendable {
    private let parts: ServiceParts
    private let logger: Logger
    private let running = Mutex<Set<DatabaseName>>([])

    init(_ parts: ServiceParts, logger: Logger) {
        self.parts = parts
        self.logger = logger
    }

    /// Starts what has to be built in the database, unless that is under way.
    func resume(_ name: DatabaseName) {
        guard isBuilding(name), running.withLock({ $0.insert(name).inserted }) else { return }
        step(name)
    }

    private func isBuilding(_ name: DatabaseName) -> Bool {
        (try? parts.catalogue.forWriting(name))?.indexes.building != nil
    }

    private func step(_ name: DatabaseName) {
        parts.store.submit { [parts] transaction in
            try Self.buildPage(of: name, in: transaction, parts)
        } completion: { [self] result in
            switch result {
            case .success(let committed):
                if let database = committed.outcome {
                    parts.catalogue.publish(name, database)
                    return step(name)
                }
            case .failure(let error):
                // A dropped database ends its build; a store that failed ends everything.
                if !(error is MessagesError) { logger.error("an index build ended", metadata: ["error": "\(error)"]) }
            }
            running.withLock { _ = $0.remove(name) }
            // Rules set in the meantime found this build running.
            if case .success = result { resume(name) }
        }
    }

    /// The database after one more page; nil when nothing is left to build.
    private static func buildPage(
        of name: DatabaseName, in transaction: any StoreTransaction, _ parts: ServiceParts
    ) throws -> Database? {
        let database = try parts.catalogue.forWriting(name)
        guard let (definition, cursor) = database.indexes.building else { return nil }
        let builder = IndexBuilder(
            definition, reader: StoreTreeReader(transaction), codec: database.codec, indexCodec: database.indexCodec)
        let page = try builder.page(after: cursor, childrenMax: parts.limits.indexBuildPageRows)
        var indexes = database.indexes
        indexes.pageApplied(page)
        let next = database.with(indexes)
        page.rows.apply(to: TransactionRows(transaction))
        next.putIndexes(into: transaction)
        if page.cursor == nil { transaction.attach(DatabaseChange(id: next.id, database: next)) }
        parts.catalogue.write(name, next)
        return next
    }
}

/// Tells an operator about the indexes of a database.
struct IndexListing {
    let database: Database
    let snapshot: any StoreSnapshot

    func list() throws -> [Messages.Indexes.Index] {
        try database.indexes.indexes.map { index in
            let entries = try database.indexCodec.count(
                index.definition, reading: StoreTreeReader(snapshot), limit: .max)
            return Messages.Indexes.Index(
                pattern: index.definition.pattern.description, on: index.definition.on,
                state: index.isReady ? .ready : .building, entries: UInt64(entries), progress: try progress(index))
        }
    }

    /// How far the build has come through the rows of the tree, judged by where its cursor stands between the first and
    /// the last of them.
    private func progress(_ index: IndexCatalog.Index) throws -> Double {
        guard case .building(let cursor) = index.state else { return 1 }
        let range = KeyRange(prefix: database.codec.prefix)
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
