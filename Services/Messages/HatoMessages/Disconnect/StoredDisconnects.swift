import HatoModel
import HatoStorage
import HatoTree

/// What connections of a process that is gone have left in the store.
struct StoredDisconnects {
    /// By connection, in the order of their numbers.
    private(set) var connections: [DisconnectEntries] = []
    /// Rows of databases that were dropped.
    private(set) var stale: [[UInt8]] = []
    /// How many places there are.
    private(set) var count = 0

    /// Throws `RecordError` when the store holds what this version cannot read.
    init(
        _ snapshot: any StoreSnapshot, _ databases: [DatabaseID: DatabaseName], totals: DisconnectTotals
    ) throws {
        var found = Found()
        try snapshot.scan(StoreKeys.disconnects, reverse: false) { key, value in
            try found.add(
                DisconnectRecord.Key(key.withUnsafeBufferPointer { Array($0) }),
                value.withUnsafeBufferPointer { Array($0) })
            return .next
        }
        for (connection, callers) in found.callers.sorted(by: { $0.key < $1.key }) {
            let owners = callers.mapValues { DisconnectOwner($0.caller, number: $0.number) }
            var trees: [DatabaseName: DisconnectEntries.KeptTree] = [:]
            var used: Set<UInt32> = []
            for (database, rows) in found.entries[connection] ?? [:] {
                let amendments = found.amendments[connection]?[database] ?? []
                guard let name = databases[database] else {
                    stale += rows.map {
                        DisconnectRecord.key(ofEntryAt: $0.write.path, in: database, connection: connection)
                    }
                    stale += amendments.map {
                        DisconnectRecord.key(ofAmendment: $0.number, in: database, connection: connection)
                    }
                    continue
                }
                let entries = try rows.map { row in
                    guard let owner = owners[row.number] else { throw RecordError(record: "on disconnect") }
                    used.insert(row.number)
                    return DisconnectEntry(write: row.write, owner: owner)
                }
                let places = Set(rows.map(\.write.path))
                guard amendments.allSatisfy({ places.contains($0.entryPath) }) else {
                    throw RecordError(record: "on disconnect")
                }
                count += entries.count
                trees[name] = DisconnectEntries.KeptTree(
                    database: database, tree: OwnedTree(entries: entries, amendments: amendments))
            }
            stale += owners.keys.filter { !used.contains($0) }.map {
                DisconnectRecord.key(ofCaller: $0, connection: connection)
            }
            if !trees.isEmpty {
                connections.append(DisconnectEntries(of: connection, trees, totals: totals))
            }
        }
    }

    private struct Found {
        var callers: [UInt64: [UInt32: (caller: Caller, number: UInt32)]] = [:]
        var entries: [UInt64: [DatabaseID: [(write: DeferredWrite, number: UInt32)]]] = [:]
        var amendments: [UInt64: [DatabaseID: [DisconnectAmendment]]] = [:]

        mutating func add(_ key: DisconnectRecord.Key, _ value: [UInt8]) throws {
            switch key {
            case .caller(let connection, let number):
                callers[connection, default: [:]][number] = (try DisconnectRecord.decodeCaller(value), number)
            case .entry(let connection, let database, let path):
                // The owner of a write precedes it.
                guard callers[connection] != nil else { throw RecordError(record: "on disconnect") }
                entries[connection, default: [:]][database, default: []].append(
                    try DisconnectRecord.decodeEntry(value, at: path))
            case .amendment(let connection, let database, let number):
                // What it amends stands before it.
                guard entries[connection]?[database] != nil else { throw RecordError(record: "on disconnect") }
                amendments[connection, default: [:]][database, default: []].append(
                    try DisconnectRecord.decodeAmendment(value, number: number))
            }
        }
    }
}
