import CRocksDB
import HatoStorage

/// Writes a memtable out before it is full.
extension RocksDatabase {
    /// Closes the memtable of the rows, which is then written out in the background, and begins a new one.
    ///
    /// A read jumps over a range tombstone in a newer memtable or file than the rows it covers; it steps over each
    /// covered row in the same memtable. Returns false when a memtable waits to be written out already: a second one
    /// might make writes wait for it. Returns false, too, while compactions are behind: see `mayRotateRows`.
    func rotateRows() throws(StoreError) -> Bool {
        guard mayRotateRows else { return false }
        let options = rocksdb_flushoptions_create()
        defer { rocksdb_flushoptions_destroy(options) }
        rocksdb_flushoptions_set_wait(options, 0)
        // A new memtable begins a new file of the log, while the other thread may be syncing the old one. The next
        // write would wait for that anyway.
        var isBegun = true
        try usingLog { () throws(StoreError) in
            do throws(StoreError) {
                try checked("write out the database", folder) { rocksdb_flush_cf(handle, options, rows, $0) }
            } catch .io(let text) where text.contains(Self.tryAgain) {
                isBegun = false
            }
        }
        return isBegun
    }

    /// RocksDB's error when writes have just been stopped: they wait, and this is no reason to end the store.
    private static let tryAgain = "Operation failed. Try again."

    /// Rows and tombstones in the active memtable.
    var freshRows: UInt64 { property("rocksdb.num-entries-active-mem-table", of: rows) }

    /// Tombstones of single rows in the active memtable.
    var freshRemovals: UInt64 { property("rocksdb.num-deletes-active-mem-table", of: rows) }

    /// RocksDB slows writes down from 20 tables of the first level on.
    private static let freshTablesMax = 16

    /// Whether RocksDB would begin at once to write out the newest rows. A flush without waiting for its end still
    /// waits for its beginning, until a compaction has ended, as long as one more table would slow writes down; the C
    /// interface has no option `allow_write_stall`.
    var mayRotateRows: Bool {
        property("rocksdb.num-immutable-mem-table", of: rows) == 0
            && property("rocksdb.is-write-stopped", of: rows) == 0
            && property("rocksdb.actual-delayed-write-rate", of: rows) == 0 && freshTables < Self.freshTablesMax
    }

    /// Tables of the first level.
    private var freshTables: Int {
        guard let text = rocksdb_property_value_cf(handle, rows, "rocksdb.num-files-at-level0") else { return 0 }
        defer { rocksdb_free(text) }
        return Int(String(cString: text)) ?? 0
    }
}
