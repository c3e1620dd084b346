import CRocksDB
import HatoStorage

extension RocksDatabase {
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
