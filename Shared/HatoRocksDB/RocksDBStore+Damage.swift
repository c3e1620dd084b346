public import HatoStorage

extension RocksDBStore {
    /// The tables are linked to a folder where another database, open for reading, opens and reads all of them anew:
    /// what this one keeps in memory (blocks of rows, and of every open table what describes it) would hide what has
    /// become of its files since. That takes the space of tables that are replaced meanwhile, and a copy of the
    /// newest file of the log, which is thrown away: replaying it would take as much memory as it took already. The
    /// writer is not held up.
    public func findDamage(_ step: (_ rows: Int) -> Void) throws(StoreError) -> [StoreError] {
        let draft = newCopy()
        defer { Files.removeFolder(draft) }
        do throws(StoreError) {
            try database.whileOpen { () throws(StoreError) in try linkTables(to: draft) }
            let damage = try TableCheck.damage(ofCopy: draft) { rows throws(StoreError) in
                // Nobody who closes the store waits until all of it is read.
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
