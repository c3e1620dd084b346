import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

@Suite("A RocksDB store with a prepared log")
struct PreparedLogTests {
    private static var options: RocksDBOptions {
        var options = RocksDBOptions.small
        options.preparedLogBytes = 1 << 20
        return options
    }

    /// The store's newest log, and where what RocksDB wrote to it ends; nil when no zeros follow.
    private func newestLog(of store: String) throws -> (path: String, end: Int?) {
        let number = try #require(LogFiles.numbers(in: store + "/rocksdb").last)
        let path = LogFiles.path(number, in: store + "/rocksdb")
        return (path, try LogEnd.find(in: path)?.offset)
    }

    private func put(_ bytes: Int, into store: RocksDBStore, using random: inout SeededRandom) async throws {
        let (number, noise) = (store.version + 1, random.noise(bytes: bytes))
        _ = try await store.write { transaction in
            transaction.put("n/\(number)", "\(number)")
            transaction.put(HatoStorageTests.bytes("noise/\(number)"), noise)
            transaction.record(HatoStorageTests.bytes("\(number)"))
        }
    }

    /// Every commit that the store says it has, and nothing else.
    private func check(_ store: RocksDBStore, _ place: Comment) throws {
        let found = try store.snapshot().rows(KeyRange(prefix: bytes("n/")))
        #expect(Set(found) == Set((0..<store.version).map { "n/\($0 + 1)=\($0 + 1)" }), place)
    }

    /// What a crash may leave of writes that nobody was answered: a store whose log is prepared, a copy of it, and its log
    /// after some more writes.
    private struct Crash {
        let folder: TemporaryFolder
        let copy: String
        let log: String
        /// The log when the copy was made, and later.
        let before: Data
        let after: Data
        /// Where the records end: of what was answered, then of each that was not.
        let ends: [Int]
        let answered: UInt64

        /// Another copy, whose log is this.
        func store(_ name: String, log bytes: Data) throws -> String {
            let path = folder.path(name)
            try FileManager.default.copyItem(atPath: copy, toPath: path)
            try bytes.write(to: URL(fileURLWithPath: path + "/rocksdb/" + log))
            return path
        }

        /// So many of the records that nobody was answered are as they were written, one after the other.
        func wholeRecords(in bytes: Data) -> Int {
            zip(ends, ends.dropFirst()).prefix { bytes[$0..<$1] == after[$0..<$1] }.count
        }
    }

    private func withCrash(_ body: (Crash, inout SeededRandom) async throws -> Void) async throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: Self.options)
            defer { store.close() }
            // Room for the rest, too: so much is still prepared.
            try await eventually("a prepared log") {
                try await put(20_000, into: store, using: &random)
                let (log, end) = try newestLog(of: path)
                return try end.map { try Data(contentsOf: URL(fileURLWithPath: log)).count - $0 > 250_000 } ?? false
            }
            let copy = folder.path("copy")
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            let answered = store.version
            let (log, end) = try newestLog(of: path)
            let before = try Data(contentsOf: URL(fileURLWithPath: log))
            var ends = [try #require(end)]
            for bytes in [100_000, 700, 3, 40_000] {
                try await put(bytes, into: store, using: &random)
                ends.append(try #require(try newestLog(of: path).end))
            }
            #expect(try newestLog(of: path).path == log)
            let crash = Crash(
                folder: folder, copy: copy, log: String(log.split(separator: "/").last ?? ""), before: before,
                after: try Data(contentsOf: URL(fileURLWithPath: log)), ends: ends, answered: answered)
            try await body(crash, &random)
        }
    }

    /// It has the folder until it is gone.
    private func expectInspection(_ path: String, _ crash: Crash) throws {
        let inspection = try RocksDBInspection(folder: path)
        defer { inspection.close() }
        #expect(inspection.version >= crash.answered)
        #expect(inspection.problems == [])
    }

    private func expectAllWhole(_ crash: Crash, _ bytes: Data, _ name: String) throws {
        let path = try crash.store(name, log: bytes)
        try expectInspection(path, crash)
        let store = try RocksDBStore.open(folder: path, options: .small)
        defer { store.close() }
        #expect(store.version == crash.answered + UInt64(crash.wholeRecords(in: bytes)), "\(name)")
        try check(store, "\(name)")
        try FileManager.default.removeItem(atPath: path)
    }

    @Test func whatWasAnsweredIsThereWhenTheProcessDies() async throws {
        try await withCrash { crash, _ in
            try expectAllWhole(crash, crash.before, "before")
            try expectAllWhole(crash, crash.after, "after")
        }
    }

    /// The process dies in the middle of a write: what follows is zeros.
    @Test func aRecordThatIsWrittenHalfIsNotThere() async throws {
        try await withCrash { crash, random in
            let (first, last) = (crash.ends[0], crash.ends[crash.ends.count - 1])
            let places = crash.ends.flatMap { [$0 + 1, $0 + 6, $0 + 7, $0 + 8] }
            let others = (0..<12).map { _ in Int.random(in: first..<last, using: &random) }
            for place in places.dropLast(4) + others {
                var bytes = crash.after
                bytes.resetBytes(in: place..<bytes.count)
                try expectAllWhole(crash, bytes, "half at \(place)")
            }
        }
    }

    /// The machine dies: any sectors of what was not synced are on disk, and others are not.
    @Test func nothingThatFollowsALostSectorIsThere() async throws {
        try await withCrash { crash, random in
            let (first, last) = (crash.ends[0], crash.ends[crash.ends.count - 1])
            for round in 0..<24 {
                var bytes = crash.after
                let lost = round < 12 ? 1 : Int.random(in: 2..<200, using: &random)
                for _ in 0..<lost {
                    let sector = Int.random(in: first..<last, using: &random) / 512 * 512
                    bytes.resetBytes(in: max(sector, first)..<min(sector + 512, bytes.count))
                }
                let path = try crash.store("lost \(round)", log: bytes)
                let store = try RocksDBStore.open(folder: path, options: .small)
                #expect(store.version == crash.answered + UInt64(crash.wholeRecords(in: bytes)), "round \(round)")
                try check(store, "round \(round)")
                // What was cut away does not come back.
                try await put(50_000, into: store, using: &random)
                store.close()
                let again = try RocksDBStore.open(folder: path, options: .small)
                try check(again, "round \(round), again")
                again.close()
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }

    @Test func aLostSectorOfWhatWasAnsweredIsRefusedAndTheLogKept() async throws {
        try await withCrash { crash, _ in
            var bytes = crash.before
            let sector = crash.ends[0] / 2 / 512 * 512
            bytes.resetBytes(in: sector..<sector + 512)
            let path = try crash.store("damaged", log: bytes)
            for _ in 0..<2 {
                let error = #expect(throws: StoreError.self) {
                    try RocksDBStore.open(folder: path, options: .small)
                }
                guard case .lostCommits(answered: crash.answered, let found)? = error else { throw Unexpected(error) }
                #expect(found < crash.answered)
                let left = try Data(contentsOf: URL(fileURLWithPath: path + "/rocksdb/" + crash.log))
                #expect(left.prefix(crash.ends[0]) == bytes.prefix(crash.ends[0]))
            }
            var options = RocksDBOptions.small
            options.acceptsLostCommits = true
            let store = try RocksDBStore.open(folder: path, options: options)
            try check(store, "what is left")
            store.close()
        }
    }

    @Test func aFlippedBitIsDamageAndNotTorn() async throws {
        try await withCrash { crash, _ in
            for place in [crash.ends[0] / 3, crash.ends[0] - 500] {
                var bytes = crash.before
                bytes[place] ^= 0x10
                let path = try crash.store("flipped \(place)", log: bytes)
                let error = #expect(throws: StoreError.self) {
                    try RocksDBStore.open(folder: path, options: .small)
                }
                guard case .corrupted? = error else { throw Unexpected(error) }
                #expect(try Data(contentsOf: URL(fileURLWithPath: path + "/rocksdb/" + crash.log)) == bytes)
            }
        }
    }

    /// Whatever the sizes, and however often RocksDB begins a new log: the process dies, and all that was answered is
    /// there.
    @Test func nothingIsOverwritten() async throws {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: Self.options)
            defer { store.close() }
            for round in 0..<3 {
                for _ in 0..<Int.random(in: 10...30, using: &random) {
                    let isHuge = Int.random(in: 0..<12, using: &random) == 0
                    try await put(
                        Int.random(in: 1...(isHuge ? 5 << 20 : 60_000), using: &random), into: store, using: &random)
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
                try check(survivor, "seed \(seed)")
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
            let store = try RocksDBStore.open(folder: path, options: Self.options)
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
                try await eventually("a prepared log") { try newestLog(of: path).end != nil }
                let backup = folder.path("backup\(round)")
                let version = try store.backup(to: backup)
                let copy = try RocksDBStore.open(folder: backup, options: .small)
                #expect(copy.version == version)
                try check(copy, "backup \(round)")
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
            let store = try RocksDBStore.open(folder: path, options: Self.options)
            try await eventually("a prepared log") {
                try await put(20_000, into: store, using: &random)
                return try newestLog(of: path).end != nil
            }
            store.close()
            #expect(try newestLog(of: path).end == nil)
            let again = try RocksDBStore.open(folder: path, options: Self.options)
            defer { again.close() }
            try check(again, "opened again")
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
                try await put(20_000, into: store, using: &random)
                #expect(try newestLog(of: path).end == nil)
            }
        }
    }
}
