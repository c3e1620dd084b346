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

    /// Databases that build an index now.
    var runningCount: Int { running.withLock { $0.count } }

    private func isBuilding(_ name: DatabaseName) -> Bool {
        parts.catalogue.newest.byName[name]?.indexes.building != nil
    }

    private func step(_ name: DatabaseName) {
        parts.store.submit { [parts] transaction in
            try Self.buildPage(of: name, in: transaction, parts)
        } completion: { [self] result in
            switch result {
            case .success(let committed):
                if committed.outcome != nil {
                    Failpoint.indexAfterPage.pass()
                    parts.metrics.builtIndexPage()
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
    static func buildPage(
        of name: DatabaseName, in transaction: any StoreTransaction, _ parts: ServiceParts
    ) throws -> Database? {
        let database = try parts.catalogue.database(name, in: transaction)
        guard let (definition, cursor) = database.indexes.building else { return nil }
        try Failpoint.indexBeforePage.passOrFail()
        let builder = IndexBuilder(
            definition, reader: StoreTreeReader(transaction), codec: database.codec, indexCodec: database.indexCodec)
        let page = try builder.page(after: cursor, childrenMax: parts.limits.indexBuildPageRows)
        var indexes = database.indexes
        indexes.pageApplied(page)
        let next = Database(database, buildingFurther: indexes)
        page.rows.apply(to: StoreRows(transaction))
        next.putIndexes(into: transaction)
        Failpoint.indexInPage.pass()
        if page.cursor == nil { transaction.attach(DatabaseChange(id: next.id, database: next)) }
        parts.catalogue.set(name, next, in: transaction)
        return next
    }
}
