import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

@Suite("The contents of a log")
struct LogContentsTests {
    @Test func gapsAreWhatIsMissingBelowTheNewest() {
        var ranges = VersionRanges()
        for version: UInt64 in [4, 5, 6, 9, 2, 6, 12] { ranges.insert(version) }
        #expect(ranges.newest == 12)
        #expect(ranges.gaps(after: 0) == [1...1, 3...3, 7...8, 10...11])
        #expect(ranges.gaps(after: 5) == [7...8, 10...11])
        #expect(ranges.gaps(after: 12).isEmpty)
        #expect(ranges.gaps(after: .max).isEmpty)
        var others = VersionRanges()
        for version: UInt64 in [7, 8, 10, 11] { others.insert(version) }
        ranges.formUnion(others)
        #expect(ranges.gaps(after: 3).isEmpty)
    }

    @Test func theHighestVersionDoesNotOverflow() {
        var ranges = VersionRanges()
        for version: UInt64 in [.max - 1, .max, 0, .max] { ranges.insert(version) }
        #expect(ranges.newest == .max)
        #expect(ranges.gaps(after: 0) == [1...(.max - 2)])
    }

    /// The log's commits are those that RocksDB has after replaying it.
    @Test func commitsAreThoseThatWereWritten() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let store = try RocksDBStore.open(folder: path, options: .small)
            for number in 1...20 { try await store.put(["k\(number)": "v\(number)"], record: "r\(number)") }
            _ = try await store.write { transaction in
                transaction.deleteRange(KeyRange(lower: bytes("k1"), upper: bytes("k3")))
                transaction.delete(bytes("k5").span)
            }
            let families = store.database.logFamilies
            guard case .whole(let contents) = try LogContents.read(in: path + "/rocksdb", families) else {
                throw Unexpected("the log is whole")
            }
            #expect(contents.commits.newest == 21)
            #expect(contents.commits.gaps(after: 0).isEmpty)
            store.close()
        }
    }

    @Test func recordsThatMakeNoSenseAreRefused() {
        let seed = SeededRandom.seed()
        var random = SeededRandom(seed: seed)
        let head = [UInt8](repeating: 0, count: 12)
        let records: [[UInt8]] = [
            [], [1, 2, 3], head + [0x01], head + [0x01, 1], head + [0x01, 1, 0x6B], head + [0x05, 0xFF],
            head + [0x05, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], head + [0x03, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], head + [0x77],
        ]
        for record in records { #expect(!WriteBatchReader.visitPuts(of: record) { _, _, _ in }, "\(record)") }
        #expect(WriteBatchReader.visitPuts(of: head) { _, _, _ in })
        // Nothing traps, and no range is outside the record.
        for _ in 0..<20_000 {
            let record =
                head
                + (0..<Int.random(in: 0..<24, using: &random)).map { _ in
                    Bool.random(using: &random)
                        ? UInt8.random(in: 0...0x10, using: &random) : UInt8.random(in: 0...255, using: &random)
                }
            _ = WriteBatchReader.visitPuts(of: record) { _, key, value in
                #expect(key.lowerBound >= 12 && key.upperBound <= value.lowerBound && value.upperBound <= record.count)
            }
        }
    }

    /// RocksDB would keep all of it in memory to report the damage.
    @Test func aLongDamagedLogIsRefusedByName() async throws {
        try await CrashedLog.with { crash, _ in
            var bytes = crash.before
            bytes[crash.ends[0] / 2] ^= 4
            let path = try crash.store("flipped", log: bytes)
            var options = RocksDBOptions.small
            options.memory = RocksDBMemory(blockCacheBytes: 1 << 20, memtableBytes: crash.ends[0] / 2)
            let error = #expect(throws: StoreError.self) { try RocksDBStore.open(folder: path, options: options) }
            guard case .corrupted(let text)? = error else { throw Unexpected("\(String(describing: error))") }
            #expect(text.contains(crash.log) && text.contains("is not as it was written"))
            #expect(try crash.log(of: path) == bytes)
        }
    }

    /// The result is the same as with enough memory for all of it.
    @Test func aLongTornLogIsCut() async throws {
        try await CrashedLog.with { crash, _ in
            var bytes = crash.after
            bytes.resetBytes(in: (crash.ends[0] + 50_000) / 512 * 512..<bytes.count)
            let path = try crash.store("torn", log: bytes)
            var options = RocksDBOptions.small
            options.memory = RocksDBMemory(blockCacheBytes: 1 << 20, memtableBytes: crash.ends[0] / 2)
            let store = try RocksDBStore.open(folder: path, options: options)
            defer { store.close() }
            #expect(store.version == crash.answered)
            try store.checkNumbered("torn")
        }
    }
}
