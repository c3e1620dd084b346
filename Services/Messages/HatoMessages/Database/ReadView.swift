import HatoModel
import HatoStorage

/// What a request reads: one durable version of everything.
struct ReadView: Sendable {
    let snapshot: any StoreSnapshot
    /// By name; of the snapshot's version when writes of the same connection were on their way, else at most a moment
    /// behind it.
    let databases: [DatabaseName: Database]
    /// The snapshot for who keeps it longer than the request.
    var lasting: (any StoreSnapshot)?
    /// Nil when nobody asks how long the request takes.
    var watch: OperationWatch?

    /// The same, counting what is read of it.
    func watched(by watch: OperationWatch?) -> ReadView {
        guard let watch else { return self }
        return ReadView(
            snapshot: CountedSnapshot(snapshot, watch.rows), databases: databases, lasting: snapshot, watch: watch)
    }

    /// Says what is read, for who asks how long it takes.
    func note(_ path: TreePath, of database: DatabaseName?) {
        watch?.path = path
        watch?.database = database ?? .default
    }

    /// - Parameter name: nil: the default one.
    func database(_ name: DatabaseName?) throws(MessagesError) -> Database {
        let name = name ?? .default
        guard let database = databases[name] else { throw .databaseNotFound(name) }
        return database
    }

    /// Of a request that is about the whole store, and names a database only as every request may.
    func checkNamed(_ name: DatabaseName?) throws(MessagesError) {
        if let name { _ = try database(name) }
    }
}
