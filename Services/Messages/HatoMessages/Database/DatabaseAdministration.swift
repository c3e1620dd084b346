import HatoModel
import HatoRules
import HatoStorage
import HatoTree

/// Attached to commits that change a database itself, for those who listen to it: other rules, other indexes, or its
/// end.
struct DatabaseChange: Sendable {
    var id: DatabaseID
    /// Nil: dropped.
    var database: Database?
}

/// What an administrator does to databases, each as one commit: what is decided here runs inside write closures,
/// between the writes that came before and those that come after.
struct DatabaseAdministration: Sendable {
    let catalogue: Catalogue
    let limits: MessagesLimits
    let meter: RulesMeter
    let now: @Sendable () -> Int64

    init(_ parts: ServiceParts) {
        catalogue = parts.catalogue
        limits = parts.limits
        meter = parts.rulesMeter
        now = parts.now
    }

    /// Compiles rules before they are queued: what takes time must not hold up the writer.
    func compile(_ text: String) throws(MessagesError) -> Rules {
        guard text.utf8.count <= limits.rulesBytesMax else { throw .rulesTooLong(max: limits.rulesBytesMax) }
        let rules: Rules
        do { rules = try Rules.compile(text) } catch { throw .wrongRules(error) }
        guard rules.indexes.count <= limits.indexesPerDatabaseMax else {
            throw .tooManyIndexes(max: limits.indexesPerDatabaseMax)
        }
        return rules
    }

    /// In a write closure: a new database.
    func create(_ name: DatabaseName, _ rules: Rules, in transaction: any StoreTransaction) throws -> Database {
        let databases = catalogue.databases(before: transaction).byName
        guard databases[name] == nil else { throw MessagesError.databaseExists(name) }
        guard databases.count < limits.databasesMax else {
            throw MessagesError.tooManyDatabases(max: limits.databasesMax)
        }
        let id = try nextID(in: transaction)
        var indexes = IndexCatalog()
        _ = indexes.adopt(rules.indexes)
        let record = DatabaseRecord(
            id: id, createdAt: now(), firstVersion: transaction.nextVersion, rules: rules.text)
        let database = Database(name: name, record: record, rules: rules, meter: meter, indexes: indexes)
        var encoder = ByteEncoder()
        encoder.append(id.rawValue + 1)
        let key = StoreKeys.nextDatabase
        transaction.put(key.span, encoder.bytes.span)
        database.put(into: transaction)
        transaction.attach(DatabaseChange(id: database.id, database: database))
        catalogue.set(name, database, in: transaction)
        return database
    }

    /// In a write closure: other rules, and the indexes they declare; the rows of indexes that they no longer declare
    /// go.
    func setRules(_ name: DatabaseName, _ rules: Rules, in transaction: any StoreTransaction) throws -> Database {
        let old = try catalogue.database(name, in: transaction)
        var indexes = old.indexes
        let dropped = indexes.adopt(rules.indexes)
        var record = old.record
        record.rules = rules.text
        let database = Database(
            name: name, record: record, rules: rules, meter: meter, indexes: indexes)
        var rows = RowBatch()
        for definition in dropped { old.indexCodec.dropRows(of: definition, from: &rows) }
        rows.apply(to: StoreRows(transaction))
        database.put(into: transaction)
        transaction.attach(DatabaseChange(id: database.id, database: database))
        catalogue.set(name, database, in: transaction)
        return database
    }

    /// In a write closure: everything of the database goes.
    func drop(_ name: DatabaseName, in transaction: any StoreTransaction) throws -> Database {
        let database = try catalogue.database(name, in: transaction)
        transaction.delete(StoreKeys.database(name).span)
        transaction.delete(StoreKeys.indexes(of: database.id).span)
        transaction.deleteRange(KeyRange(prefix: StoreKeys.tree(of: database.id)))
        transaction.deleteRange(KeyRange(prefix: StoreKeys.indexRows(of: database.id)))
        transaction.attach(DatabaseChange(id: database.id, database: nil))
        catalogue.set(name, nil, in: transaction)
        return database
    }

    private func nextID(in transaction: any StoreTransaction) throws -> DatabaseID {
        let key = StoreKeys.nextDatabase
        guard let bytes = try transaction.get(key.span) else { return DatabaseID(rawValue: 1) }
        var decoder = ByteDecoder(bytes)
        guard let id = decoder.uint32() else { throw RecordError(record: "next database") }
        return DatabaseID(rawValue: id)
    }
}
