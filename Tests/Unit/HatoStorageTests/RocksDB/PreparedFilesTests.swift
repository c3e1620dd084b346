import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// The files of prepared rows, and what a crash leaves of them.
@Suite("Files of prepared rows")
struct PreparedFilesTests {
    private func files(_ folder: TemporaryFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path("store/prepared"))
    }

    private func prepared(_ store: RocksDBStore, _ count: Int) throws -> any PreparedRows {
        try store.prepareRows { target in
            for number in 0..<count { target.put(bytes("a/\(number + 100_000)"), bytes(String(number))) }
        }
    }

    @Test func theyStayAcrossOpenings() async throws {
        try await TemporaryFolder.with { folder in
            var store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            let (rows, others) = (try prepared(store, 1_000), try prepared(store, 1))
            _ = try await store.write { $0.take([rows]) }
            #expect(try files(folder).count == 1)
            withExtendedLifetime(others) {}
            store.close()
            store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            #expect(store.version == 1)
            #expect(try store.snapshot().rows().count == 1_000)
            #expect(try files(folder).isEmpty, "what nobody took is removed")
        }
    }

    @Test func rowsThatNobodyTakesLeaveNoFile() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            do {
                let rows = try prepared(store, 10)
                #expect(try files(folder).count == 1)
                withExtendedLifetime(rows) {}
            }
            #expect(try files(folder).isEmpty)
        }
    }

    /// As a crash leaves it between the two steps: the batch is on disk, the file still lies where it was written.
    @Test(arguments: [false, true])
    func whatWasCommittedAndNotYetTakenIsTakenAtTheNextOpening(isTakenAlready: Bool) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            var store = try RocksDBStore.open(folder: path, options: .small)
            try await store.put(["a/0": "old", "z": "kept"])
            let rows = try #require(try prepared(store, 500) as? RocksPreparedRows)
            let file = try #require(rows.path)
            rows.noteTaken()
            store.close()

            let database = try RocksDatabase(folder: path + "/rocksdb", memory: RocksDBOptions.small.memory)
            let batch = database.makeBatch()
            batch.delete(bytes("a/0").span)
            batch.putCommit(2, record: bytes("second"))
            batch.putAboutStore(PreparedFiles.noteKey, PreparedFiles.note(of: [rows]))
            try database.write(batch)
            try database.syncLog()
            if isTakenAlready { try database.takeFiles([file]) }
            database.close()

            for _ in 0..<2 {
                store = try RocksDBStore.open(folder: path, options: .small)
                #expect(store.version == 2)
                #expect(try store.snapshot().rows().count == 501)
                #expect(try store.snapshot().text("a/0") == nil)
                #expect(try store.commits(after: 1, limit: 1).first?.record == bytes("second"))
                #expect(try files(folder).isEmpty)
                store.close()
            }
        }
    }
}
