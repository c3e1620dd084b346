import CRocksDB
import HatoStorage

/// When a memtable is written out before it is full.
extension RocksDatabase {
    /// Closes the memtable of the rows, which is then written out in the background, and begins a new one.
    ///
    /// A range tombstone in a newer memtable or file than the rows it covers is jumped over by every read near it; of
    /// rows in the same memtable, each is stepped over. False when there is one to be written out already: a second one
    /// might make writes wait for it. False, too, while compactions are behind: see `mayRotateRows`.
    func rotateRows() throws(StoreError) -> Bool {
        guard mayRotateRows else { return false }
        let options = rocksdb_flushoptions_create()
        defer { rocksdb_flushoptions_destroy(options) }
        rocksdb_flushoptions_set_wait(options, 0)
        // A new memtable begins a new file of the log, while the other thread may be syncing the old one. The write
        // that comes next would wait for that anyway.
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

    /// What RocksDB says when writes have just been stopped: they wait, and this is no reason to end the store.
    private static let tryAgain = "Operation failed. Try again."

    /// Rows and tombstones in the memtable that is written to.
    var freshRows: UInt64 { property("rocksdb.num-entries-active-mem-table", of: rows) }

    /// Of single rows, in the memtable that is written to.
    var freshRemovals: UInt64 { property("rocksdb.num-deletes-active-mem-table", of: rows) }

    /// RocksDB slows writes down from 20 tables of the first level on.
    private static let freshTablesMax = 16

    /// Whether RocksDB would begin at once to write out the newest rows. Asked for it without waiting for the end, it
    /// still waits for the beginning as long as one more table would slow writes down, until a compaction has ended;
    /// and the C interface has no word for `allow_write_stall`.
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
