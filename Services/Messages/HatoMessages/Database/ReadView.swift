import HatoModel
import HatoStorage

/// What a request reads: one durable version of everything.
struct ReadView: Sendable {
    let snapshot: any StoreSnapshot
    /// By name; of the snapshot's version when writes of the same connection were on their way, else at most a moment
    /// behind it.
    let databases: [DatabaseName: Database]

    /// - Parameter name: nil: the default one.
    func database(_ name: DatabaseName?) throws(MessagesError) -> Database {
        let name = name ?? .default
        guard let database = databases[name] else { throw .databaseNotFound(name) }
        return database
    }
}
