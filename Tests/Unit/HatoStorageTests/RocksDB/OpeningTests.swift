import Foundation
import HatoRocksDB
import HatoStorage
import HatoTesting
import Testing

@Suite("Opening a RocksDB store")
struct OpeningTests {
    @Test func writtenRowsAreThereAfterReopening() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("new/folders/store")
            let first = try RocksDBStore.open(folder: path, options: .small)
            for number in 1...30 { try await first.put(["k\(number)": "v\(number)"], record: "r\(number)") }
            try first.compactCommits(through: 10)
            first.close()

            let again = try RocksDBStore.open(folder: path, options: .small)
            #expect(again.epoch == first.epoch)
            #expect(again.version == 30)
            #expect(try again.snapshot().rows().count == 30)
            #expect(again.keptCommits.oldest == 11)
            #expect(try again.commits(after: 10, limit: 100).map(\.version) == Array(11...30))
            #expect(try await again.put(["k": "v"]) == 31)
            again.close()
        }
    }

    @Test func storeOfOneServiceIsNotOpenedForAnother() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let first = try RocksDBStore.open(folder: path, of: "auth", options: .small)
            try await first.put(["k": "v"])
            first.close()
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: path, of: "messages", options: .small)
            }
            guard case .io(let text) = error else { throw Unexpected(error) }
            #expect(text.contains("is a store of auth, not of messages"))
            let again = try RocksDBStore.open(folder: path, of: "auth", options: .small)
            defer { again.close() }
            #expect(try again.snapshot().text("k") == "v")
        }
    }

    @Test func theVersionStaysWhenEveryRecordIsRemoved() async throws {
        try await TemporaryFolder.with { folder in
            let first = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            for number in 1...5 { try await first.put(["k": String(number)], record: "r") }
            try first.compactCommits(through: 5)
            first.close()
            let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { again.close() }
            #expect(again.version == 5)
            #expect(again.keptCommits == KeptCommits(oldest: nil, bytes: 0))
            #expect(throws: StoreError.compacted(oldest: 6)) { try again.commits(after: 4, limit: 1) }
            #expect(try again.commits(after: 5, limit: 1).isEmpty)
        }
    }

    @Test func aSecondOpeningIsRefusedUntilTheFirstIsClosed() async throws {
        try await TemporaryFolder.with { folder in
            let first = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: folder.path("store"), options: .small)
            }
            guard case .locked(let text) = error else { throw Unexpected(error) }
            #expect(text.contains(folder.path("store")))
            let kept = try first.snapshot()
            first.close()
            // A retained snapshot does not keep the folder locked.
            try RocksDBStore.open(folder: folder.path("store"), options: .small).close()
            #expect(throws: StoreError.closed(cause: nil)) { try kept.rows() }
        }
    }

    @Test func aFolderOfANewerFormatIsRefusedUntouched() async throws {
        try await TemporaryFolder.with { folder in
            try RocksDBStore.open(folder: folder.path("store"), options: .small).close()
            try Data("hato-store 3\n".utf8).write(to: URL(fileURLWithPath: folder.path("store/format")))
            let before = try FileManager.default.contentsOfDirectory(atPath: folder.path("store/rocksdb")).sorted()
            #expect(throws: StoreError.newerFormat(found: 3, supported: 2)) {
                try RocksDBStore.open(folder: folder.path("store"), options: .small)
            }
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path("store/rocksdb")).sorted() == before)
        }
    }

    @Test func aFolderOfAnOlderFormatIsOfThisOneOnceItWasOpened() async throws {
        try await TemporaryFolder.with { folder in
            let first = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            #expect(try await first.put(["a": "1"]) == 1)
            first.close()
            try Data("hato-store 1\n".utf8).write(to: URL(fileURLWithPath: folder.path("store/format")))
            let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            #expect(try again.snapshot().rows().count == 1)
            again.close()
            #expect(try String(contentsOfFile: folder.path("store/format"), encoding: .utf8) == "hato-store 2\n")
        }
    }

    @Test(arguments: ["", "hato-store\n", "hato-store x\n", "sqlite 1\n", "hato-store 0\n"])
    func anUnreadableFormatIsRefused(text: String) async throws {
        try await TemporaryFolder.with { folder in
            try RocksDBStore.open(folder: folder.path("store"), options: .small).close()
            try Data(text.utf8).write(to: URL(fileURLWithPath: folder.path("store/format")))
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: folder.path("store"), options: .small)
            }
            guard case .corrupted = error else { throw Unexpected(error) }
        }
    }

    @Test func folderOfAnotherUserIsLeftAlone() async throws {
        try await TemporaryFolder.with { folder in
            try Data("mine".utf8).write(to: URL(fileURLWithPath: folder.path("letter.txt")))
            let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: folder.path, options: .small) }
            guard case .io(let text) = error else { throw Unexpected(error) }
            #expect(text.contains("letter.txt"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["letter.txt"])
        }
    }

    @Test func aStoreThatWasNotCreatedToItsEndIsCreatedAgain() async throws {
        try await TemporaryFolder.with { folder in
            let first = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            first.close()
            try FileManager.default.removeItem(atPath: folder.path("store/format"))
            try FileManager.default.removeItem(atPath: folder.path("store/answered"))
            let again = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            #expect(try await again.put(["a": "1"]) == 1)
            again.close()
            #expect(try String(contentsOfFile: folder.path("store/format"), encoding: .utf8) == "hato-store 2\n")
        }
    }

    @Test(arguments: [true, false])
    func aStoreWithDataWhoseFormatIsMissingIsRefusedUntilItIsBack(keepsAnswered: Bool) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let first = try RocksDBStore.open(folder: path, options: .small)
            for number in 1...3 { try await first.put(["k\(number)": "v"]) }
            first.close()
            let answered = try Data(contentsOf: URL(fileURLWithPath: path + "/answered"))
            try FileManager.default.removeItem(atPath: path + "/format")
            if !keepsAnswered { try FileManager.default.removeItem(atPath: path + "/answered") }
            for _ in 0..<2 {
                let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
                guard case .corrupted(let text) = error else { throw Unexpected(error) }
                #expect(text.contains("\(path)/format is missing, and the store holds 3 commits"))
            }
            try Data("hato-store 1\n".utf8).write(to: URL(fileURLWithPath: path + "/format"))
            try answered.write(to: URL(fileURLWithPath: path + "/answered"))
            let again = try RocksDBStore.open(folder: path, options: .small)
            defer { again.close() }
            #expect(again.epoch == first.epoch)
            #expect(try again.snapshot().rows().count == 3)
        }
    }

    @Test func aBackupThatWasNotFinishedIsRefused() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            try await store.put(["a": "1"])
            try store.backup(to: folder.path("backup"))
            store.close()
            try FileManager.default.removeItem(atPath: folder.path("backup/format"))
            let error = #expect(throws: StoreError.self) {
                try RocksDBStore.open(folder: folder.path("backup"), options: .small)
            }
            guard case .corrupted = error else { throw Unexpected(error) }
        }
    }

    @Test func leftoversOfAnInterruptedBackupAreRemoved() async throws {
        try await TemporaryFolder.with { folder in
            try RocksDBStore.open(folder: folder.path("store"), options: .small).close()
            let draft = folder.path("store/copying/7.tmp")
            try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
            try Data("rows".utf8).write(to: URL(fileURLWithPath: draft + "/000007.sst"))
            try RocksDBStore.open(folder: folder.path("store"), options: .small).close()
            #expect(!FileManager.default.fileExists(atPath: folder.path("store/copying")))
        }
    }

    @Test func aRestoredBackupKeepsTheEpochItGotWhenItWasFirstOpened() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            try await store.put(["a": "1"])
            try store.backup(to: folder.path("backup"))
            store.close()
            let restored = try RocksDBStore.open(folder: folder.path("backup"), options: .small)
            restored.close()
            let again = try RocksDBStore.open(folder: folder.path("backup"), options: .small)
            again.close()
            #expect(restored.epoch != store.epoch)
            #expect(again.epoch == restored.epoch)
        }
    }

    @Test func severalStoresOfAProcessShareOneMemory() async throws {
        try await TemporaryFolder.with { folder in
            var options = RocksDBOptions()
            options.memory = RocksDBMemory(blockCacheBytes: 8 << 20, memtableBytes: 4 << 20)
            let stores = try (0..<3).map { try RocksDBStore.open(folder: folder.path("store\($0)"), options: options) }
            for (number, store) in stores.enumerated() {
                try await store.put(["a": String(number)])
                #expect(try store.snapshot().text("a") == String(number))
                // Read one after the other, while the background work of opening may still read.
                try await eventually("both read the same") {
                    store.statistics["rocksdb.block_cache_bytes"] == stores[0].statistics["rocksdb.block_cache_bytes"]
                }
            }
            for store in stores { store.close() }
        }
    }

    @Test func manyRecordsAreDroppedFromDisk() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            var random = SeededRandom(seed: 7)
            for _ in 0..<40 {
                let noise = random.noise(bytes: 250_000)
                _ = try await store.write { transaction in
                    transaction.put(bytes("a"), [1])
                    transaction.record(noise)
                }
            }
            let before = store.keptCommits
            #expect(before.bytes > 9_000_000)
            try store.compactCommits(through: 38)
            let after = store.keptCommits
            #expect(after.oldest == 39)
            #expect(after.bytes < before.bytes)
            #expect(try store.commits(after: 38, limit: 10).map(\.record.count) == [250_000, 250_000])
        }
    }
}

struct Unexpected: Error {
    let found: String
    init(_ found: Any?) { self.found = String(describing: found) }
}
