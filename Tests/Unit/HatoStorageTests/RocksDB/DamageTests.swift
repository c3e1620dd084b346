import Foundation
import HatoRocksDB
import HatoStorage
import Testing

@Suite("A damaged RocksDB store")
struct DamageTests {
    /// A store whose last 50 commits are in the log only, and the path of that log.
    private func writeStore(in folder: TemporaryFolder) async throws -> (path: String, log: String, epoch: StoreEpoch) {
        let path = folder.path("store")
        let store = try RocksDBStore.open(folder: path, options: .small)
        for number in 1...50 { try await store.put(["k\(number)": "v\(number)"], record: "r\(number)") }
        let epoch = store.epoch
        store.close()
        let logs = try FileManager.default.contentsOfDirectory(atPath: path + "/rocksdb").filter {
            $0.hasSuffix(".log")
        }
        let log = try #require(logs.max())
        return (path, path + "/rocksdb/" + log, epoch)
    }

    @Test func aLogThatLostItsTailIsRefusedWithTheCount() async throws {
        try await TemporaryFolder.with { folder in
            let (path, log, epoch) = try await writeStore(in: folder)
            let size = try #require(FileManager.default.attributesOfItem(atPath: log)[.size] as? Int)
            try FileHandle(forWritingTo: URL(fileURLWithPath: log)).truncate(atOffset: UInt64(size / 2))

            let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
            guard case .lostCommits(answered: 50, let found)? = error else { throw Unexpected(error) }
            #expect(found > 0 && found < 50)
            #expect(
                String(describing: error ?? .closed(cause: nil)).contains(
                    "\(50 - found) acknowledged commits are missing"))
            // Refused again, and not because the first refusal left it locked.
            #expect(throws: StoreError.lostCommits(answered: 50, found: found)) {
                try RocksDBStore.open(folder: path, options: .small)
            }

            var options = RocksDBOptions.small
            options.acceptsLostCommits = true
            let store = try RocksDBStore.open(folder: path, options: options)
            #expect(store.version == found)
            #expect(store.epoch != epoch)
            #expect(try store.snapshot().rows().count == Int(found))
            #expect(try await store.put(["a": "1"]) == found + 1)
            store.close()
            let again = try RocksDBStore.open(folder: path, options: .small)
            #expect(again.epoch == store.epoch)
            again.close()
        }
    }

    @Test func aFlippedBitInTheLogIsNeverPassedOver() async throws {
        for place in [3, 10, 20] {
            try await TemporaryFolder.with { folder in
                let (path, log, _) = try await writeStore(in: folder)
                var bytes = try Data(contentsOf: URL(fileURLWithPath: log))
                bytes[bytes.count * place / 24] ^= 0x10
                try bytes.write(to: URL(fileURLWithPath: log))
                let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
                switch error {
                case .corrupted, .lostCommits: break
                default: throw Unexpected(error)
                }
            }
        }
    }

    @Test func aFlippedBitInATableIsAnErrorAndNoTrap() async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, _) = try await writeStore(in: folder)
            // Opening writes the log's rows to tables.
            try RocksDBStore.open(folder: path, options: .small).close()
            let rocksDB = path + "/rocksdb"
            for name in try FileManager.default.contentsOfDirectory(atPath: rocksDB) where name.hasSuffix(".sst") {
                let url = URL(fileURLWithPath: rocksDB + "/" + name)
                var bytes = try Data(contentsOf: url)
                for place in 0..<200 { bytes[place] ^= 0x55 }
                try bytes.write(to: url)
            }
            do {
                let store = try RocksDBStore.open(folder: path, options: .small)
                defer { store.close() }
                #expect(throws: StoreError.self) { try store.snapshot().rows() }
            } catch let error as StoreError {
                guard case .corrupted = error else { throw Unexpected(error) }
            }
        }
    }

    @Test(arguments: ["missing", "empty", "garbage"])
    func damagedFileOfAcknowledgedVersionsIsRefusedUnlessTheLossIsAccepted(kind: String) async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, _) = try await writeStore(in: folder)
            let answered = URL(fileURLWithPath: path + "/answered")
            switch kind {
            case "missing": try FileManager.default.removeItem(at: answered)
            case "empty": try Data().write(to: answered)
            default: try Data(repeating: 7, count: 1024).write(to: answered)
            }
            #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
            var options = RocksDBOptions.small
            options.acceptsLostCommits = true
            let store = try RocksDBStore.open(folder: path, options: options)
            #expect(store.version == 50)
            store.close()
            try RocksDBStore.open(folder: path, options: .small).close()
        }
    }

    /// RocksDB's own message follows the failed task and its path.
    @Test func messageOfRocksDBFollowsTheFailedTask() async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, _) = try await writeStore(in: folder)
            try Data("MANIFEST-999999\n".utf8).write(to: URL(fileURLWithPath: path + "/rocksdb/CURRENT"))
            let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains("cannot open the database in \(path)/rocksdb (RocksDB: "), "\(text)")
        }
    }

    @Test func tornWriteOfTheAcknowledgedVersionLeavesTheOtherCopy() async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, _) = try await writeStore(in: folder)
            let url = URL(fileURLWithPath: path + "/answered")
            let whole = try Data(contentsOf: url)
            for place in [0, 512] {
                var torn = whole
                torn[place + 12] ^= 0xFF
                try torn.write(to: url)
                try RocksDBStore.open(folder: path, options: .small).close()
            }
        }
    }

    @Test func aStoreFromAnOlderCopyOfTheDatabaseIsRefused() async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, _) = try await writeStore(in: folder)
            try FileManager.default.copyItem(atPath: path + "/rocksdb", toPath: folder.path("older"))
            let store = try RocksDBStore.open(folder: path, options: .small)
            for number in 0..<7 { try await store.put(["later": String(number)]) }
            store.close()
            try FileManager.default.removeItem(atPath: path + "/rocksdb")
            try FileManager.default.moveItem(atPath: folder.path("older"), toPath: path + "/rocksdb")
            #expect(throws: StoreError.lostCommits(answered: 57, found: 50)) {
                try RocksDBStore.open(folder: path, options: .small)
            }
        }
    }
}
