import CRocksDB
import HatoStorage

extension RocksDatabase {
    /// RocksDB slows writes down from 20 tables of the first level on.
    private static let freshTablesMax = 16

    /// Whether RocksDB would begin at once to write out the newest rows. Asked for it without waiting for the end, it still
    /// waits for the beginning as long as one more table would slow writes down, until a compaction has ended; and the
    /// C interface has no word for `allow_write_stall`.
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

    /// Reads every table to its end and returns what is not as it was written; the text names the file, as a rule: not
    /// always where a table is described. Of each family the first: a walk ends at what it cannot read.
    ///
    /// RocksDB compares every block that it reads with its checksum. A walk that ignores range tombstones comes through
    /// every block of rows in every table, also where all of it is covered by newer rows or deleted, since it is the walk
    /// that finds that out, row by row; seeking past the versions of one row is switched off in databases that are open
    /// for reading. Opening a table reads what describes it: its footer, its list of blocks, its properties, its range
    /// tombstones.
    ///
    /// What it does not come to is the Bloom filter of a table. RocksDB compares it, too, where it uses it, and goes on
    /// without when it is damaged: then it looks into the table itself. The next compaction writes another one without
    /// having read it. Some bytes that fill up the footer mean nothing.
    ///
    /// - Parameter step: is called at every row that is not deleted; what it throws ends the check.
    func damagedTables(_ step: () throws(StoreError) -> Void) throws(StoreError) -> [StoreError] {
        var damage: [StoreError] = []
        for family in [about, rows, commits] {
            do throws(StoreError) {
                try readTables(of: family, step)
            } catch .corrupted(let text) {
                damage.append(.corrupted(text))
            }
        }
        return damage
    }

    private func readTables(
        of family: OpaquePointer, _ step: () throws(StoreError) -> Void
    ) throws(StoreError) {
        let options = NativeReadOptions(snapshot: nil)
        options.leaveCache()
        options.ignoreRangeTombstones()
        let iterator = NativeIterator(handle, options, family)
        iterator.seekToFirst()
        while iterator.isAtRow {
            try step()
            iterator.next()
        }
        try iterator.checkEnd(in: folder)
    }
}
