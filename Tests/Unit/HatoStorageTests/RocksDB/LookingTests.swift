import Foundation
import HatoStorage
import Testing

@testable import HatoRocksDB

@Suite("Checks of a RocksDB store before it is opened")
struct LookingTests {
    @Test func aBackupThatIsRefusedStaysABackup() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            try await store.put(["a": "1"])
            let backup = folder.path("backup")
            try store.backup(to: backup)
            store.close()
            // Its list matches the files: only their meaning is wrong.
            try AcknowledgedFile.create(backup + "/answered", version: 7)
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

    /// A store that has removed the records of 5 commits and keeps 35, of which 6 to 20 are in one file of the log and
    /// the others in the next; and the path of the first.
    private func writeStore(in folder: TemporaryFolder) async throws -> (path: String, log: String, epoch: StoreEpoch) {
        let path = folder.path("store")
        let store = try RocksDBStore.open(folder: path, options: .small)
        for number in 1...20 { try await store.put(["k\(number)": "v\(number)"], record: "r\(number)") }
        // Flushing the mark begins a new file of the log.
        try store.compactCommits(through: 5)
        for number in 21...40 { try await store.put(["k\(number)": "v\(number)"], record: "r\(number)") }
        let epoch = store.epoch
        store.close()
        let logs = try FileManager.default.contentsOfDirectory(atPath: path + "/rocksdb")
            .filter { $0.hasSuffix(".log") }
        let log = try #require(logs.sorted().dropLast().last, "the log has two files: \(logs)")
        return (path, path + "/rocksdb/" + log, epoch)
    }

    /// The damage to the first of two files of the log.
    enum Damage: CaseIterable {
        case cut
        case removed

        func apply(to log: String) throws {
            switch self {
            case .cut:
                let bytes = try Data(contentsOf: URL(fileURLWithPath: log))
                try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: log))
            case .removed: try FileManager.default.removeItem(atPath: log)
            }
        }
    }

    @Test func aLogOfSeveralFilesIsWhole() async throws {
        try await TemporaryFolder.with { folder in
            let (path, _, epoch) = try await writeStore(in: folder)
            for _ in 0..<2 {
                let store = try RocksDBStore.open(folder: path, options: .small)
                defer { store.close() }
                #expect(store.version == 40)
                #expect(store.epoch == epoch)
                #expect(try store.commits(after: 5, limit: 100).map(\.version) == Array(6...40))
            }
        }
    }

    /// The newest commit exists and matches the `answered` file: only the commits themselves show the gap.
    @Test(arguments: Damage.allCases)
    func aLogThatLostItsMiddleIsRefusedWithWhatIsMissing(damage: Damage) async throws {
        try await TemporaryFolder.with { folder in
            let (path, log, _) = try await writeStore(in: folder)
            try damage.apply(to: log)
            for _ in 0..<2 {
                let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
                guard case .corrupted(let text)? = error else { throw Unexpected(error) }
                #expect(text.contains("commits are missing although later ones, up to 40, are there: "), "\(text)")
                #expect(text.contains(damage == .cut ? " to 20;" : ": 6 to 20;"), "\(text)")
            }
        }
    }

    @Test func acceptedLossInTheMiddleOfALogChangesTheEpoch() async throws {
        try await TemporaryFolder.with { folder in
            let (path, log, epoch) = try await writeStore(in: folder)
            try Damage.cut.apply(to: log)
            var options = RocksDBOptions.small
            options.acceptsLostCommits = true
            let store = try RocksDBStore.open(folder: path, options: options)
            #expect(store.version == 40)
            #expect(store.epoch != epoch)
            #expect(throws: StoreError.compacted(oldest: 21)) { try store.commits(after: 10, limit: 100) }
            #expect(try store.commits(after: 20, limit: 100).map(\.version) == Array(21...40))
            #expect(try await store.put(["a": "1"]) == 41)
            store.close()
            let again = try RocksDBStore.open(folder: path, options: .small)
            defer { again.close() }
            #expect(again.version == 41)
            #expect(again.epoch == store.epoch)
        }
    }

    /// The result of a power loss: everything synced is there, and of the rest only the later part.
    @Test func aMissingUnansweredCommitIsFoundInATableToo() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: .small)
            try await store.put(["a": "1"])
            store.close()
            let database = try RocksDatabase(folder: path + "/rocksdb", memory: RocksDBOptions.small.memory)
            let batch = database.makeBatch()
            batch.putCommit(3, record: bytes("third"))
            try database.write(batch)
            try database.writeOut()
            database.close()
            let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: .small) }
            guard case .corrupted(let text)? = error else { throw Unexpected(error) }
            #expect(text.contains("up to 3, are there: 2;"), "\(text)")
        }
    }
}
