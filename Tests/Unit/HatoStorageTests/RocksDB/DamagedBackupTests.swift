import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// Damage is found when a backup is made, or at the latest before its restore replaces anything.
@Suite("Backups with damage")
struct DamagedBackupTests {
    private static func key(_ number: Int) -> [UInt8] { bytes("n/\(1_000 + number)") }

    /// An open store whose rows are in a table, half of them deleted.
    private func openStore(_ path: String) async throws -> RocksDBStore {
        let store = try RocksDBStore.open(folder: path, options: .small)
        var random = SeededRandom(seed: 9)
        let noise = (0..<200).map { _ in random.noise(bytes: 1_000) }
        _ = try await store.write { transaction in
            for (number, value) in noise.enumerated() { transaction.put(Self.key(number), value) }
        }
        try store.database.writeOut()
        _ = try await store.write { $0.deleteRange(KeyRange(lower: Self.key(100), upper: nil)) }
        try store.database.writeOut()
        // A compaction that is under way replaces the table that a test damages.
        let database = store.database
        try await eventually("no compaction is under way") {
            [database.rows, database.commits].allSatisfy {
                database.property("rocksdb.compaction-pending", of: $0) == 0
                    && database.property("rocksdb.num-running-compactions", of: $0) == 0
            }
        }
        return store
    }

    private func largest(in folder: String) throws -> TableFile {
        try #require(TableFile.all(in: folder).max { $0.sound.count < $1.sound.count })
    }

    /// Where a bit is flipped: in rows that cannot be read any more, in the filter, which RocksDB does not need, and in
    /// the table's metadata.
    private static func places(_ table: TableFile) -> [Int] {
        #expect(table.filter.count >= 200)
        return [table.filter.lowerBound * 3 / 4, table.filter.lowerBound + 20, table.sound.count - 4]
    }

    private func names(_ path: String) -> [String]? { try? FileManager.default.contentsOfDirectory(atPath: path) }

    @Test func aDamagedStoreIsNotBackedUpAndGoesOn() async throws {
        try await TemporaryFolder.with { folder in
            let store = try await openStore(folder.path("live"))
            defer { store.close() }
            let backups = BackupFolder(folder.path("backups"), service: "messages")
            let table = try largest(in: folder.path("live/rocksdb"))
            for place in Self.places(table) {
                try table.flipBit(at: place)
                let error = #expect(throws: StoreError.self) { try backups.write("first", of: store) }
                guard case .corrupted(let text)? = error else { throw Unexpected(error) }
                #expect(text.hasPrefix("the store itself is damaged: "), "\(text)")
                #expect(text.contains(folder.path("live/rocksdb/") + table.name), "\(text)")
                #expect(text.contains("restore a backup"))
                #expect(names(backups.path) == [])
                try table.mend(at: place)
            }
            #expect(try await store.put(["a": "1"]) == 3)
            #expect(try backups.write("first", of: store) == 3)
        }
    }

    /// A backup of an earlier version: the files match its list, but are damaged.
    @Test func backupOfADamagedStoreIsNotRestored() async throws {
        try await TemporaryFolder.with { folder in
            let store = try await openStore(folder.path("live"))
            let backups = BackupFolder(folder.path("backups"), service: "messages")
            _ = try backups.write("first", of: store)
            store.close()
            let backup = folder.path("backups/first")
            let table = try largest(in: backup + "/rocksdb")
            for place in Self.places(table) {
                try table.flipBit(at: place)
                try BackupContents.write(in: backup)
                let error = #expect(throws: StoreError.self) {
                    try RocksDBStore.restore(
                        backup: backup, of: "messages", to: folder.path("data"), options: .small)
                }
                guard case .corrupted(let text)? = error else { throw Unexpected(error) }
                #expect(text.contains("\(backup)/rocksdb/\(table.name)"), "\(text)")
                #expect(text.hasSuffix("restore an older backup"), "\(text)")
                #expect(names(folder.path("data")) == nil)
                try table.mend(at: place)
            }
            try BackupContents.write(in: backup)
            let restored = try RocksDBStore.restore(
                backup: backup, of: "messages", to: folder.path("data"), options: .small)
            #expect(restored.version == 2)
        }
    }

    /// The damage is on the disk of the copy, and the store is intact.
    @Test func aDamagedCopyIsDistinguishedFromADamagedStore() async throws {
        try await TemporaryFolder.with { folder in
            let store = try await openStore(folder.path("live"))
            defer { store.close() }
            try FileManager.default.createDirectory(
                atPath: folder.path("live/copying"), withIntermediateDirectories: true)
            try store.database.writeOut()
            try store.database.link(to: folder.path("live/copying/other"))
            // A copy without links: damage to it does not affect the store.
            try FileManager.default.copyItem(atPath: folder.path("live/copying/other"), toPath: folder.path("copy"))
            let table = try largest(in: folder.path("copy"))
            try table.flipBit(at: table.filter.lowerBound / 2)
            let error = #expect(throws: StoreError.self) {
                try BackupSettling(store: store).settleSound(folder.path("copy"))
            }
            guard case .io(let text)? = error else { throw Unexpected(error) }
            #expect(text.contains(folder.path("copy/") + table.name), "\(text)")
            #expect(text.contains("the store is not") && text.contains("check the disk"), "\(text)")
            try table.mend(at: table.filter.lowerBound / 2)
            #expect(try BackupSettling(store: store).settleSound(folder.path("copy")) == 2)
        }
    }
}
