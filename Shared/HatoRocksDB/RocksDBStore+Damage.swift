public import HatoStorage

extension RocksDBStore {
    /// Links the tables to a folder where another database, open for reading, opens and reads all of them anew: the
    /// caches of this database (blocks of rows, and the metadata of every open table) would hide what has happened to
    /// its files since. That takes the space of tables that are replaced meanwhile, and a copy of the newest file of
    /// the log, which is thrown away: replaying it would take as much memory as it takes already. The writer is not
    /// delayed.
    public func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError] {
        let draft = newCopy()
        defer { Files.removeFolder(draft) }
        do throws(StoreError) {
            try database.whileOpen { () throws(StoreError) in try linkTables(to: draft) }
            let damage = try TableCheck.damage(ofCopy: draft) { rows throws(StoreError) in
                // Stops the check when the store is closed, so that closing does not wait for it.
                try database.whileOpen { () throws(StoreError) in }
                step(rows)
            }
            return damage.map { $0.naming(database.folder, insteadOf: draft) }
        } catch {
            throw error.naming(database.folder, insteadOf: draft)
        }
    }

    private func linkTables(to draft: String) throws(StoreError) {
        try Files.createFolder(copying)
        try database.linkAnyState(to: draft)
        for name in try Files.names(in: draft) where name.hasSuffix(".log") { try Files.remove("\(draft)/\(name)") }
    }
}
