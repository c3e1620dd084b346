import HatoModel
import HatoRPC
import HatoStorage

/// What a request reads: one durable version of everything.
struct ReadView: Sendable {
    private(set) var snapshot: any StoreSnapshot
    /// Of the snapshot.
    let databases: Databases
    /// The snapshot for who keeps it longer than the request.
    var lasting: (any StoreSnapshot)?
    /// What a result may take, in bytes; a read that needs more throws `TreeError.tooBig`.
    var bytesMax: Int
    /// What limits its rows; nil: nothing.
    private var limiting: ShortReadSnapshot?
    /// Whether the read has stopped at the limit of its rows.
    var wantsMoreRows: Bool { limiting?.isExhausted ?? false }
    /// Nil when the time of the request is not measured.
    var watch: OperationWatch?

    /// - Parameter bytesMax: what any result may take.
    init(_ snapshot: any StoreSnapshot, _ catalogue: Catalogue, bytesMax: Int) {
        self.snapshot = snapshot
        databases = catalogue.databases(of: snapshot)
        self.bytesMax = bytesMax
    }

    /// The same, counting what is read of it.
    func watched(by watch: OperationWatch?) -> ReadView {
        guard let watch else { return self }
        var view = reading(CountedSnapshot(snapshot, watch.rows))
        view.watch = watch
        return view
    }

    /// The same for a result of so many bytes, which is made of so many rows.
    func limited(to bytesMax: Int, rowsMax: Int, watchedBy watch: OperationWatch?) -> ReadView {
        guard bytesMax < self.bytesMax else { return watched(by: watch) }
        let limiting = ShortReadSnapshot(
            snapshot, rowsMax: rowsMax, bytesMax: bytesMax, countedBy: watch?.rows ?? RowCounter())
        var view = reading(limiting)
        view.limiting = limiting
        view.bytesMax = bytesMax
        view.watch = watch
        return view
    }

    /// The same for a read that ends when its connection has closed.
    func whileOpen(_ connection: RPCConnection) -> ReadView {
        reading(OpenConnectionSnapshot(snapshot, connection))
    }

    /// The same, read through another snapshot of the same version.
    private func reading(_ other: any StoreSnapshot) -> ReadView {
        var view = self
        view.snapshot = other
        view.lasting = lasting ?? snapshot
        return view
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
