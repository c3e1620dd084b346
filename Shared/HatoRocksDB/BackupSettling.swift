import HatoStorage

/// Turns the copy of a database into a backup. All steps run beside the store and do not delay it.
struct BackupSettling {
    let store: RocksDBStore

    /// Brings the copy in `folder` to one state, compares all of it with its checksums, and returns its version.
    func settleSound(_ folder: String) throws(StoreError) -> UInt64 {
        do throws(StoreError) {
            return try settle(folder)
        } catch .corrupted(let text) {
            // The damage is in the store, or on the disk it was copied to: the operator has to act differently.
            if case .corrupted(let own)? = try store.findDamage({ _ in }).first {
                throw .corrupted(
                    "the store itself is damaged: \(own); nothing of it is backed up: restore a backup, or move what can "
                        + "still be read to a new store")
            }
            throw .io(
                "the copy is damaged, and the store is not: \(text); check the disk that backups go to, then try again")
        }
    }

    /// Writes that arrive while RocksDB copies are in logs whose end only a reader of the log finds. Opening the copy
    /// once writes all of it into tables; no log with contents is left.
    private func settle(_ folder: String) throws(StoreError) -> UInt64 {
        try LogEnd.cutCopy(in: folder)
        let memory = RocksDBMemory(blockCacheBytes: 8 << 20, memtableBytes: 32 << 20)
        let copy = try RocksDatabase(folder: folder, memory: memory, for: .settling)
        defer { copy.close() }
        let damage = try TableCheck(database: copy).damage { _ throws(StoreError) in
            // Stops the check when the store is closed, so that closing does not wait for it.
            try store.database.whileOpen { () throws(StoreError) in }
        }
        if let first = damage.first { throw first }
        return try copy.newestCommit() ?? 0
    }
}
