import HatoModel
import HatoRules
import HatoStorage

/// The databases of a store as of one commit: their rules and indexes.
///
/// It is the derived state of the store (`Store`), so a snapshot, its version and its databases are one value.
final class Databases: Sendable {
    let byName: [DatabaseName: Database]
    /// That of the service that made it, by whose limits its rules are evaluated.
    fileprivate let meter: RulesMeter

    fileprivate init(_ byName: [DatabaseName: Database], _ meter: RulesMeter) {
        self.byName = byName
        self.meter = meter
    }

    func database(_ name: DatabaseName) throws(MessagesError) -> Database {
        guard let database = byName[name] else { throw .databaseNotFound(name) }
        return database
    }
}

/// Says which databases belong to a snapshot or a transaction.
///
/// A commit that changes a database sets the derived state of the store. Until the first one, the databases are those
/// that were read when the service started.
final class Catalogue: Sendable {
    private let store: any Store
    private let meter: RulesMeter
    private let atStart: Databases

    /// Reads every database record. Throws when one of them cannot be read or holds rules that do not compile.
    init(_ store: any Store, _ meter: RulesMeter) throws {
        self.store = store
        self.meter = meter
        var databases: [DatabaseName: Database] = [:]
        let prefix = StoreKeys.databases.lower.count
        let snapshot = try store.snapshot()
        try snapshot.scan(StoreKeys.databases, reverse: false) { key, value in
            let text = key.extracting(prefix..<key.count).withUnsafeBufferPointer {
                String(decoding: $0, as: UTF8.self)
            }
            let record = try DatabaseRecord(value.withUnsafeBufferPointer { Array($0) })
            guard let name = DatabaseName(rawValue: text) else { throw RecordError(record: "database name") }
            databases[name] = try Database(name: name, record: record, reading: snapshot, meter)
            return .next
        }
        atStart = Databases(databases, meter)
    }

    /// As of a snapshot that was taken since the service started.
    func databases(of snapshot: any StoreSnapshot) -> Databases { databases(snapshot.derived) }

    /// As the writes before this one left them.
    func databases(before transaction: any StoreTransaction) -> Databases { databases(transaction.derived) }

    /// A database as the writes before this one left it.
    func database(_ name: DatabaseName, in transaction: any StoreTransaction) throws(MessagesError) -> Database {
        try databases(before: transaction).database(name)
    }

    /// As of the newest snapshot; once the store has closed, as they were at the start.
    var newest: Databases { (try? store.snapshot()).map(databases(of:)) ?? atStart }

    /// Replaces or removes a database with the commit of a transaction.
    func set(_ name: DatabaseName, _ database: Database?, in transaction: any StoreTransaction) {
        var byName = databases(before: transaction).byName
        byName[name] = database
        transaction.setDerived(Databases(byName, meter))
    }

    private func databases(_ derived: (any StoreDerived)?) -> Databases {
        guard let databases = derived as? Databases, databases.meter === meter else { return atStart }
        return databases
    }
}
