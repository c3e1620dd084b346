import CRocksDB
import CRocksDBTables
import HatoStorage

/// Compares the tables of a database with their checksums.
struct TableCheck {
    let database: RocksDatabase

    /// Reads every table completely and returns the damage found; the text names the file.
    ///
    /// RocksDB keeps a checksum with every block of a table and compares it when it reads one. No read reaches all of
    /// them: rows that are covered by newer ones or deleted are read only by a compaction, and then damage ends the
    /// store; and RocksDB does not report a damaged filter: it reads the rows themselves instead, so that no row is
    /// missed, and the next compaction writes a new filter without having read the old one. So the tables are read
    /// block by block here. Some padding bytes in the footer of a table have no meaning and no checksum.
    ///
    /// - Parameter step: called after every table with the number of its rows, tombstones included. An error that it
    ///   throws ends the check.
    func damage(_ step: (_ rows: Int) throws(StoreError) -> Void) throws(StoreError) -> [StoreError] {
        var damage: [StoreError] = []
        for path in tables() { try step(try Self.check(path, &damage)) }
        return damage
    }

    /// Like `damage`, for a copy that no process has open or writes to.
    static func damage(
        ofCopy folder: String, _ step: (_ rows: Int) throws(StoreError) -> Void
    ) throws(StoreError) -> [StoreError] {
        let copy: RocksDatabase
        do throws(StoreError) {
            let memory = RocksDBMemory(blockCacheBytes: 8 << 20, memtableBytes: 1 << 20)
            copy = try RocksDatabase(folder: folder, memory: memory, for: .reading())
        } catch .corrupted(let text) {
            // Opening the database opens the tables, and its error does not always name them.
            var damage: [StoreError] = []
            for name in try Files.names(in: folder).sorted() where name.hasSuffix(".sst") {
                try step(try check("\(folder)/\(name)", &damage))
            }
            return damage.isEmpty ? [.corrupted(text)] : damage
        }
        defer { copy.close() }
        return try TableCheck(database: copy).damage(step)
    }

    private static func check(_ path: String, _ damage: inout [StoreError]) throws(StoreError) -> Int {
        do throws(StoreError) {
            let rows = try checked("check the blocks", path) { hato_check_table(path, $0) }
            return Int(clamping: rows)
        } catch .corrupted(let text) {
            damage.append(.corrupted(text))
            return 0
        }
    }

    /// The files of the database's tables.
    private func tables() -> [String] {
        guard let files = rocksdb_livefiles(database.handle) else { return [] }
        defer { rocksdb_livefiles_destroy(files) }
        // Their names begin with a slash.
        return (0..<rocksdb_livefiles_count(files)).compactMap { index in
            rocksdb_livefiles_name(files, index).map { database.folder + String(cString: $0) }
        }
    }
}

extension StoreError {
    /// The error with the paths in `folder` replaced by those in `other`.
    func naming(_ other: String, insteadOf folder: String) -> StoreError {
        switch self {
        case .corrupted(let text): .corrupted(text.replacing(folder, with: other))
        case .io(let text): .io(text.replacing(folder, with: other))
        default: self
        }
    }
}
