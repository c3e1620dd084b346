import CRocksDB
import HatoStorage

/// The statistics that RocksDB keeps about a database, by their metric names.
struct RocksFigures {
    let database: RocksDatabase

    /// Empty when the database has closed.
    static func ofOpen(_ database: RocksDatabase) -> [String: Double] {
        let figures = try? database.whileOpen { () throws(StoreError) in RocksFigures(database: database).all }
        return figures ?? [:]
    }

    private var all: [String: Double] {
        let (rows, commits) = (database.rows, database.commits)
        var figures = ["rocksdb.block_cache_bytes": Double(database.cache.usedBytes)]
        let sums = [
            "rocksdb.memtable_bytes": "rocksdb.cur-size-all-mem-tables",
            "rocksdb.live_bytes": "rocksdb.estimate-live-data-size",
            "rocksdb.files_bytes": "rocksdb.total-sst-files-size",
            "rocksdb.table_reader_bytes": "rocksdb.estimate-table-readers-mem",
            "rocksdb.pending_compaction_bytes": "rocksdb.estimate-pending-compaction-bytes",
        ]
        for (name, property) in sums {
            figures[name] = Double([rows, commits].reduce(0) { $0 + database.property(property, of: $1) })
        }
        figures["rocksdb.rows_estimate"] = Double(database.property("rocksdb.estimate-num-keys", of: rows))
        figures["rocksdb.fresh_rows"] = Double(database.freshRows)
        figures["rocksdb.snapshots"] = Double(database.property("rocksdb.num-snapshots", of: rows))
        figures["rocksdb.running_compactions"] = Double(database.property("rocksdb.num-running-compactions", of: rows))
        figures["rocksdb.running_flushes"] = Double(database.property("rocksdb.num-running-flushes", of: rows))
        figures["rocksdb.background_errors"] = Double(database.backgroundErrors)
        figures["rocksdb.is_write_stopped"] = Double(database.property("rocksdb.is-write-stopped", of: rows))
        return figures
    }
}

extension RocksDatabase {
    func property(_ name: String, of family: OpaquePointer) -> UInt64 {
        var value: UInt64 = 0
        return rocksdb_property_int_cf(handle, family, name, &value) == 0 ? value : 0
    }

    /// Flushes and compactions that have failed since the database was opened. RocksDB counts those of all families
    /// with its first one.
    var backgroundErrors: UInt64 { property("rocksdb.background-errors", of: about) }
}
