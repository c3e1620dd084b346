import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// The files of prepared rows, and their state after a crash.
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

    @Test func takenRowsStayAcrossOpeningsAndOtherFilesAreRemoved() async throws {
        try await TemporaryFolder.with { folder in
            var store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            do {
                let (rows, others) = (try prepared(store, 1_000), try prepared(store, 1))
                _ = try await store.write { $0.take([rows]) }
                #expect(
                    try files(folder).count == 3,
                    "the file of one, and the file of the other with its copy")
                withExtendedLifetime((rows, others)) {}
            }
            store.close()
            // Files that only a crash leaves: rows without a commit, and a copy of them.
            for name in ["x.sst", "x.sst.copy"] {
                try Data("rows".utf8).write(to: URL(fileURLWithPath: folder.path("store/prepared/\(name)")))
            }
            store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            #expect(store.version == 1)
            #expect(try store.snapshot().rows().count == 1_000)
            #expect(try files(folder).isEmpty, "untaken files are removed")
        }
    }

    @Test func untakenRowsLeaveNoFile() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            do {
                let rows = try prepared(store, 10)
                #expect(try files(folder).count == 2)
                withExtendedLifetime(rows) {}
            }
            #expect(try files(folder).isEmpty)
        }
    }

    @Test func backupsHoldRowsWithTheirCommit() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            defer { store.close() }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for round in 1...20 {
                        let rows = try store.prepareRows { target in
                            for number in 0..<500 { target.put(bytes("a/\(number + 1_000)"), bytes(String(round))) }
                        }
                        _ = try await store.write { transaction in
                            transaction.take([rows])
                            transaction.put("round", String(round))
                        }
                    }
                }
                for number in 0..<4 {
                    try store.backup(to: folder.path("backup\(number)"))
                    let copy = try RocksDBStore.open(folder: folder.path("backup\(number)"), options: .small)
                    defer { copy.close() }
                    let (rows, round) = (try copy.snapshot().rows(), try copy.snapshot().text("round"))
                    #expect(rows.count == (round == nil ? 0 : 501))
                    #expect(rows.allSatisfy { $0.hasSuffix("=\(round ?? "")") })
                }
                try await group.waitForAll()
            }
        }
    }

    /// The moment of the crash.
    enum Moment: CaseIterable {
        /// The batch is on disk, RocksDB has not ingested the file.
        case before
        /// RocksDB has written into the file and has no record of it.
        case between
        /// The file is ingested.
        case after
    }

    @Test(arguments: Moment.allCases)
    func committedRowsAreIngestedAtTheNextOpening(moment: Moment) async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            var store = try RocksDBStore.open(folder: path, options: .small)
            // RocksDB writes into files that are above existing rows.
            try await store.put(["a/0": "old", "a/100001": "old", "z": "kept"])
            let rows = try #require(try prepared(store, 500) as? RocksPreparedRows)
            let copy = RocksPreparedRows.copy(of: try #require(rows.path))
            rows.noteTaken()
            store.close()

            let database = try RocksDatabase(folder: path + "/rocksdb", memory: RocksDBOptions.small.memory)
            let batch = database.makeBatch()
            batch.delete(bytes("a/0").span)
            batch.putCommit(2, record: bytes("second"))
            batch.putAboutStore(PreparedFiles.noteKey, PreparedFiles.note(of: [rows]))
            try database.write(batch)
            try database.syncLog()
            database.close()
            switch moment {
            case .before: break
            case .between: try writeIntoCopy(copy, of: path, in: folder)
            case .after: try take(copy, path + "/rocksdb")
            }

            let error = #expect(throws: StoreError.self) { try RocksDBInspection(folder: path) }
            guard case .io(let text) = error else { throw Unexpected(error) }
            #expect(text.contains("wait to be put in their place at the next start"))
            for _ in 0..<2 {
                store = try RocksDBStore.open(folder: path, options: .small)
                #expect(store.version == 2)
                #expect(try store.snapshot().rows().count == 501)
                #expect(try store.snapshot().text("a/0") == nil)
                #expect(try store.snapshot().text("a/100001") == "1")
                #expect(try store.commits(after: 1, limit: 1).first?.record == bytes("second"))
                #expect(try files(folder).isEmpty)
                store.close()
                let inspection = try RocksDBInspection(folder: path)
                #expect(inspection.problems.isEmpty && inspection.version == 2)
                inspection.close()
            }
        }
    }

    private func take(_ file: String, _ folder: String) throws {
        let database = try RocksDatabase(folder: folder, memory: RocksDBOptions.small.memory)
        defer { database.close() }
        try database.takeFiles([file])
    }

    /// Leaves the copy in the state after an ingestion: a copy of the database, which shares its bytes, ingests it.
    private func writeIntoCopy(_ file: String, of store: String, in folder: TemporaryFolder) throws {
        let other = folder.path("other")
        try FileManager.default.copyItem(atPath: store + "/rocksdb", toPath: other)
        let before = try Data(contentsOf: URL(fileURLWithPath: file))
        try FileManager.default.linkItem(atPath: file, toPath: file + ".link")
        try take(file, other)
        try FileManager.default.moveItem(atPath: file + ".link", toPath: file)
        #expect(try Data(contentsOf: URL(fileURLWithPath: file)) != before, "RocksDB writes into what it takes")
    }
}
