import HatoModel
import HatoRules
import HatoStorage
import Synchronization

/// The databases of a store, in two views: as the next write sees them and as readers do.
///
/// `written` is changed inside write closures, which the store runs one after the other; `durable` follows in their
/// completions, which come in the same order. So a write is judged by the rules that were set before it, even when both
/// wait for one sync, and a reader never sees rules that a crash could take back.
final class Catalogue: Sendable {
    private let written: Mutex<[DatabaseName: Database]>
    private let durable: Mutex<[DatabaseName: Database]>

    /// Reads every database record. Throws when one of them cannot be read or holds rules that do not compile.
    init(_ snapshot: any StoreSnapshot, _ meter: RulesMeter) throws {
        var databases: [DatabaseName: Database] = [:]
        let prefix = StoreKeys.databases.lower.count
        try snapshot.scan(StoreKeys.databases, reverse: false) { key, value in
            let text = key.extracting(prefix..<key.count).withUnsafeBufferPointer {
                String(decoding: $0, as: UTF8.self)
            }
            let record = try DatabaseRecord(value.withUnsafeBufferPointer { Array($0) })
            guard let name = DatabaseName(rawValue: text) else { throw RecordError(record: "database name") }
            databases[name] = try Database(name: name, record: record, reading: snapshot, meter)
            return .next
        }
        written = Mutex(databases)
        durable = Mutex(databases)
    }

    /// As the next write sees it; called in write closures.
    func forWriting(_ name: DatabaseName) throws(MessagesError) -> Database {
        guard let database = written.withLock({ $0[name] }) else { throw .databaseNotFound(name) }
        return database
    }

    /// As they are on disk.
    var readable: [DatabaseName: Database] { durable.withLock { $0 } }

    /// As it is on disk.
    func readable(_ name: DatabaseName) -> Database? { durable.withLock { $0[name] } }

    var writtenCount: Int { written.withLock { $0.count } }

    /// In a write closure, after its last step that can fail.
    func write(_ name: DatabaseName, _ database: Database?) { written.withLock { $0[name] = database } }

    /// In the completion of that closure.
    func publish(_ name: DatabaseName, _ database: Database?) { durable.withLock { $0[name] = database } }
}
