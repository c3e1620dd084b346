public import HatoStorage

extension RocksDBStore {
    private static let rowsBetweenLooks = 4_096

    /// The tables are linked to a folder where another database, open for reading, opens and reads all of them anew: what
    /// this one keeps in memory (blocks of rows, and of every open table what describes it) would hide what has become of
    /// its files since. That takes the space of tables that are replaced meanwhile, 8 MiB of cache of its own, and a copy
    /// of the newest file of the log, which is thrown away: replaying it would take as much memory as it took already.
    /// The writer is not held up.
    public func findDamage(_ step: () -> Void) throws(StoreError) -> [StoreError] {
        let draft = newCopy()
        defer { Files.removeFolder(draft) }
        do throws(StoreError) {
            try database.whileOpen { () throws(StoreError) in try linkTables(to: draft) }
            return try readTables(of: draft, step).map { inOwnFolder($0, draft) }
        } catch {
            throw inOwnFolder(error, draft)
        }
    }

    private func linkTables(to draft: String) throws(StoreError) {
        try Files.createFolder(copying)
        try database.linkAnyState(to: draft)
        for name in try Files.names(in: draft) where name.hasSuffix(".log") { try Files.remove("\(draft)/\(name)") }
    }

    private func readTables(of draft: String, _ step: () -> Void) throws(StoreError) -> [StoreError] {
        let memory = RocksDBMemory(blockCacheBytes: 8 << 20, memtableBytes: 1 << 20)
        let copy: RocksDatabase
        do throws(StoreError) {
            copy = try RocksDatabase(folder: draft, memory: memory, for: .reading())
        } catch .corrupted(let text) {
            // Tables are opened with it.
            return [.corrupted(text)]
        }
        defer { copy.close() }
        var rows = 0
        return try copy.damagedTables { () throws(StoreError) in
            rows += 1
            // Nobody who closes the store waits until all of it is read.
            if rows % Self.rowsBetweenLooks == 0 { try database.whileOpen { () throws(StoreError) in } }
            step()
        }
    }

    /// What is said of a linked file is said of the file itself.
    private func inOwnFolder(_ error: StoreError, _ draft: String) -> StoreError {
        switch error {
        case .corrupted(let text): .corrupted(text.replacing(draft, with: database.folder))
        case .io(let text): .io(text.replacing(draft, with: database.folder))
        default: error
        }
    }
}
