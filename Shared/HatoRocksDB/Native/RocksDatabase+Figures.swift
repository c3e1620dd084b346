import CRocksDB

// What RocksDB says of itself.

extension RocksDatabase {
    var statistics: [String: Double] {
        var figures = ["rocksdb.block_cache_bytes": Double(cache.usedBytes)]
        let sums = [
            "rocksdb.memtable_bytes": "rocksdb.cur-size-all-mem-tables",
            "rocksdb.live_bytes": "rocksdb.estimate-live-data-size",
            "rocksdb.files_bytes": "rocksdb.total-sst-files-size",
            "rocksdb.table_reader_bytes": "rocksdb.estimate-table-readers-mem",
            "rocksdb.pending_compaction_bytes": "rocksdb.estimate-pending-compaction-bytes",
        ]
        for (name, property) in sums {
            figures[name] = Double([rows, commits].reduce(0) { $0 + self.property(property, of: $1) })
        }
        figures["rocksdb.rows_estimate"] = Double(property("rocksdb.estimate-num-keys", of: rows))
        figures["rocksdb.fresh_rows"] = Double(freshRows)
        figures["rocksdb.snapshots"] = Double(property("rocksdb.num-snapshots", of: rows))
        figures["rocksdb.running_compactions"] = Double(property("rocksdb.num-running-compactions", of: rows))
        figures["rocksdb.running_flushes"] = Double(property("rocksdb.num-running-flushes", of: rows))
        figures["rocksdb.background_errors"] = Double(backgroundErrors)
        figures["rocksdb.is_write_stopped"] = Double(property("rocksdb.is-write-stopped", of: rows))
        return figures
    }

    func property(_ name: String, of family: OpaquePointer) -> UInt64 {
        var value: UInt64 = 0
        return rocksdb_property_int_cf(handle, family, name, &value) == 0 ? value : 0
    }
}
