import HatoStorage

/// What becomes of the copy of a database before it is a backup. All of it goes on beside the store, which is not
/// held up.
struct BackupSettling {
    let store: RocksDBStore

    /// Makes one state of the copy in `folder`, compares all of it with its checksums, and tells its version.
    func settleSound(_ folder: String) throws(StoreError) -> UInt64 {
        do throws(StoreError) {
            return try settle(folder)
        } catch .corrupted(let text) {
            // It is the store's damage, or that of the disk it was copied to: what is to be done differs.
            if case .corrupted(let own)? = try store.findDamage({ _ in }).first {
                throw .corrupted(
                    "the store itself is damaged: \(own); nothing of it is backed up: restore a backup, or move what can "
                        + "still be read to a new store")
            }
            throw .io(
                "the copy is damaged, and the store is not: \(text); check the disk that backups go to, then try again")
        }
    }

    /// What others write while RocksDB copies stands in logs, and how far they go is known only to who reads them.
    /// Opening the copy once puts all of it into tables; no log with anything in it is left.
    private func settle(_ folder: String) throws(StoreError) -> UInt64 {
        try LogEnd.cutCopy(in: folder)
        let memory = RocksDBMemory(blockCacheBytes: 8 << 20, memtableBytes: 32 << 20)
        let copy = try RocksDatabase(folder: folder, memory: memory, for: .settling)
        defer { copy.close() }
        let damage = try TableCheck(database: copy).damage { _ throws(StoreError) in
            // Nobody who closes the store waits until all of it is read.
            try store.database.whileOpen { () throws(StoreError) in }
        }
        if let first = damage.first { throw first }
        return try copy.newestCommit() ?? 0
    }
}
