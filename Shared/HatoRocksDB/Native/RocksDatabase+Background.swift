import HatoStorage

// What fails on RocksDB's own threads. After some failures, e.g. of a compaction on a full disk, RocksDB only stops
// compacting and takes writes until it stalls, and no call returns an error.

extension RocksDatabase {
    /// Flushes and compactions that have failed since the database was opened. RocksDB counts those of all families
    /// with its first one.
    var backgroundErrors: UInt64 { property("rocksdb.background-errors", of: about) }

    /// Throws when a flush or compaction has failed since the database was opened.
    func checkBackground() throws(StoreError) {
        let count = backgroundErrors
        guard count == 0 else {
            throw .io("background work of the database in \(folder) has failed (\(count) times); its file LOG says why")
        }
    }
}
