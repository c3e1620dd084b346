import HatoModel
import HatoStorage

/// What a request reads: one durable version of everything.
struct ReadView: Sendable {
    let snapshot: any StoreSnapshot
    /// Of the snapshot.
    let databases: Databases
    /// The snapshot for who keeps it longer than the request.
    var lasting: (any StoreSnapshot)?
    /// Nil when nobody asks how long the request takes.
    var watch: OperationWatch?

    init(_ snapshot: any StoreSnapshot, _ catalogue: Catalogue) {
        self.init(snapshot: snapshot, databases: catalogue.databases(of: snapshot))
    }

    private init(
        snapshot: any StoreSnapshot, databases: Databases, lasting: (any StoreSnapshot)? = nil,
        watch: OperationWatch? = nil
    ) {
        self.snapshot = snapshot
        self.databases = databases
        self.lasting = lasting
        self.watch = watch
    }

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
        try databases.database(name ?? .default)
    }

    /// Of a request that is about the whole store, and names a database only as every request may.
    func checkNamed(_ name: DatabaseName?) throws(MessagesError) {
        if let name { _ = try database(name) }
    }
}
