import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

@Suite("A RocksDB store with a prepared log")
struct PreparedLogTests {
    @Test func acknowledgedCommitsSurviveTheProcess() async throws {
        try await CrashedLog.with { crash, _ in
            try crash.expectAllWhole(crash.before, "before")
            try crash.expectAllWhole(crash.after, "after")
        }
    }

    /// RocksDB skips zeros by itself, and so does a version of Hato without this feature.
    @Test func versionWithoutPreparingReadsAPreparedLog() async throws {
        try await CrashedLog.with { crash, _ in
            let path = try crash.store("zeros", log: crash.after)
            #expect(try crash.log(of: path).last == 0)
            for purpose in [DatabasePurpose.reading(), .writing(preparedLogBytes: 0)] {
                let database = try RocksDatabase(
                    folder: path + "/rocksdb", memory: RocksDBOptions.small.memory, for: purpose)
                defer { database.close() }
                #expect(try database.newestCommit() == crash.answered + UInt64(crash.ends.count - 1))
                #expect(try database.missingCommits(after: crash.answered) == [])
            }
        }
    }

    /// Whatever the sizes, and however often RocksDB begins a new log: when the process is killed, every acknowledged
    /// commit is there.
    @Test func nothingIsOverwritten() async throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: RocksDBOptions.prepared)
            defer { store.close() }
            for round in 0..<3 {
                for _ in 0..<Int.random(in: 10...30, using: &random) {
                    let isHuge = Int.random(in: 0..<12, using: &random) == 0
                    try await store.putNumbered(
                        Int.random(in: 1...(isHuge ? 5 << 20 : 60_000), using: &random), using: &random)
                }
                let copy = folder.path("copy\(round)")
                try await eventually("a copy while RocksDB rests") {
                    try? FileManager.default.removeItem(atPath: copy)
                    guard isResting(store) else { return false }
                    do { try FileManager.default.copyItem(atPath: path, toPath: copy) } catch { return false }
                    return isResting(store)
                }
                let survivor = try RocksDBStore.open(folder: copy, options: .small)
                defer { survivor.close() }
                #expect(survivor.version == store.version, "seed \(seed)")
                try survivor.checkNumbered("seed \(seed)")
            }
        }
    }

    private func isResting(_ store: RocksDBStore) -> Bool {
        let figures = store.statistics
        return figures["rocksdb.running_flushes"] == 0 && figures["rocksdb.running_compactions"] == 0
    }

    /// RocksDB copies the newest log while it is written.
    @Test func backupsUnderLoadAreWhole() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: RocksDBOptions.prepared)
            defer { store.close() }
            let writers = (0..<4).map { writer in
                Task {
                    var random = SeededRandom(seed: UInt64(writer))
                    while !Task.isCancelled {
                        let noise = random.noise(bytes: Int.random(in: 1...12_000, using: &random))
                        _ = try await store.write { transaction in
                            let version = transaction.nextVersion
                            transaction.put("n/\(version)", "\(version)")
                            transaction.put(bytes("noise/\(writer)"), noise)
                        }
                    }
                }
            }
            for round in 0..<6 {
                try await eventually("a prepared log") { try LogEnd.newest(of: path).end != nil }
                let backup = folder.path("backup\(round)")
                let version = try store.backup(to: backup)
                let copy = try RocksDBStore.open(folder: backup, options: .small)
                #expect(copy.version == version)
                try copy.checkNumbered("backup \(round)")
                copy.close()
            }
            for writer in writers { writer.cancel() }
            for writer in writers { try await writer.value }
        }
    }

    @Test func aStoreThatIsClosedLeavesNoZeros() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            var random = SeededRandom(seed: 1)
            let store = try RocksDBStore.open(folder: path, options: RocksDBOptions.prepared)
            try await eventually("a prepared log") {
                try await store.putNumbered(20_000, using: &random)
                return try LogEnd.newest(of: path).end != nil
            }
            store.close()
            #expect(try LogEnd.newest(of: path).end == nil)
            let again = try RocksDBStore.open(folder: path, options: RocksDBOptions.prepared)
            defer { again.close() }
            try again.checkNumbered("opened again")
        }
    }

    @Test func withoutPreparingThereAreNoZeros() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            var options = RocksDBOptions.small
            options.preparedLogBytes = 0
            let store = try RocksDBStore.open(folder: path, options: options)
            defer { store.close() }
            var random = SeededRandom(seed: 1)
            for _ in 0..<100 {
                try await store.putNumbered(20_000, using: &random)
                #expect(try LogEnd.newest(of: path).end == nil)
            }
        }
    }
}
