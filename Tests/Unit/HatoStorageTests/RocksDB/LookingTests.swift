import Foundation
import HatoStorage
import Testing

@testable import HatoRocksDB

@Suite("A look at a RocksDB store before it is opened")
struct LookingTests {
    @Test func aBackupThatIsRefusedStaysABackup() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            try await store.put(["a": "1"])
            let backup = folder.path("backup")
            try store.backup(to: backup)
            store.close()
            // Its list names the files as they are: only their meaning is wrong.
            try AnsweredFile.create(backup + "/answered", version: 7)
            try BackupContents.write(in: backup)
            for _ in 0..<2 {
                #expect(throws: StoreError.lostCommits(answered: 7, found: 1)) {
                    try RocksDBStore.open(folder: backup, options: .small)
                }
                let isOpened = try BackupContents.isBeingOpened(backup)
                #expect(!isOpened)
            }
        }
    }
}
