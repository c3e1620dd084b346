import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// Damaged blocks that no read reaches: the damage must be found, since RocksDB reads them when it rewrites their file,
/// and the store then ends.
@Suite("Hidden damage in a RocksDB store", .timeLimit(.minutes(20)))
struct HiddenDamageTests {
    private static let rows = 200

    private static func key(_ number: Int) -> [UInt8] { bytes("n/\(1_000 + number)") }

    /// Rows of a kilobyte that do not compress.
    private static func noise(_ number: Int) -> [UInt8] {
        var random = SeededRandom(seed: UInt64(number))
        return (0..<1_024).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// Most rows are covered by range tombstones in newer tables: a gap as after dropping an index, and everything from
    /// a key on as after dropping a database; some rows are in two tables. The log is empty.
    private func writeStore(_ path: String) async throws {
        let store = try RocksDBStore.open(folder: path, options: .small)
        _ = try await store.write { transaction in
            for number in 0..<Self.rows { transaction.put(Self.key(number), Self.noise(number)) }
            transaction.record(Self.noise(1_000))
        }
        try store.database.writeOut()
        _ = try await store.write { transaction in
            transaction.deleteRange(KeyRange(lower: Self.key(20), upper: Self.key(90)))
            transaction.deleteRange(KeyRange(lower: Self.key(110), upper: nil))
            for number in 0..<20 { transaction.put(Self.key(number), bytes("new")) }
        }
        store.close()
        // Opening writes the log's rows to tables.
        try RocksDBStore.open(folder: path, options: .small).close()
    }

    private static func expected() -> [[UInt8]] {
        (0..<20).map { _ in bytes("new") } + (90..<110).map(noise)
    }

    private func values(_ store: some Store) throws -> [[UInt8]] {
        var values: [[UInt8]] = []
        try store.snapshot().scan(.all, reverse: false) { _, value in
            values.append(value.withUnsafeBufferPointer { Array($0) })
            return .next
        }
        return values
    }

    private func tables(_ path: String) throws -> [String] { try TableFile.all(in: path + "/rocksdb").map(\.name) }

    /// The findings of an inspection of the folder, whether it can be opened or not. Meanwhile each row that is read
    /// has its expected value, or is refused: single look-ups use the filters.
    private func damage(_ path: String) -> [String] {
        do {
            let inspection = try RocksDBInspection(folder: path)
            defer { inspection.close() }
            for (number, value) in Self.lookUps {
                do { #expect(try inspection.get(Self.key(number).span) == value, "row \(number)") } catch {}
            }
            return try inspection.findDamage { _ in }.map { "\($0)" }
        } catch {
            return ["\(error)"]
        }
    }

    private static let lookUps = [(3, bytes("new"))] + stride(from: 90, to: 110, by: 3).map { ($0, noise($0)) }

    /// The start of the metadata: before it are rows and the filter.
    private func descriptions(_ count: Int) -> Int { max(0, count - 1_600) }

    /// The end of a table: the positions of its block lists, with padding, and two numbers.
    private static let footerBytes = 53

    /// Every 1,021 bytes, so that the positions within blocks differ, and densely in the metadata.
    private func places(_ count: Int) -> [Int] {
        let tail = descriptions(count)
        return Array(stride(from: 0, to: tail, by: 1_021)) + Array(stride(from: tail, to: count, by: 13))
    }

    @Test func everyFlippedBitIsFoundOrHarmless() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            try await writeStore(path)
            #expect(damage(path) == [])
            var (found, passed) = (0, 0)
            for table in try tables(path) {
                let file = URL(fileURLWithPath: "\(path)/rocksdb/\(table)")
                let whole = try Data(contentsOf: file)
                var harmless = whole
                for place in places(whole.count) {
                    var bytes = whole
                    bytes[place] ^= 0x04
                    try bytes.write(to: file)
                    let text = damage(path)
                    if text.isEmpty {
                        #expect(place >= whole.count - Self.footerBytes, "\(table) at \(place)")
                        harmless[place] ^= 0x04
                        passed += 1
                    } else {
                        // When a table's metadata is invalid, RocksDB does not always name the table.
                        let isNamed = text.contains { $0.contains(table) }
                        #expect(isNamed || place >= descriptions(whole.count), "\(table) at \(place): \(text)")
                        found += 1
                    }
                }
                try harmless.write(to: file)
                // All of them together, and each table alone.
                try await expectItIsRewritten(path, to: folder.path(table))
                try whole.write(to: file)
            }
            print("flipped bits: \(found) found, \(passed) in padding")
            #expect(found > 200 && passed < found / 10)
        }
    }

    /// Copies the store, makes RocksDB rewrite all its tables of rows, and reads it.
    private func expectItIsRewritten(_ path: String, to copy: String) async throws {
        try FileManager.default.copyItem(atPath: path, toPath: copy)
        defer { try? FileManager.default.removeItem(atPath: copy) }
        let before = try rowTables(copy)
        let store = try RocksDBStore.open(folder: copy, options: .small)
        defer { store.close() }
        #expect(try values(store) == Self.expected())
        // Tables that overlap all others, until there are enough for a compaction.
        for _ in 0..<4 {
            _ = try await store.write { transaction in
                transaction.put(bytes("a"), bytes(""))
                transaction.put(bytes("z"), bytes(""))
            }
            try store.database.writeOut()
        }
        try await eventually("all tables of rows are rewritten") { try before.isDisjoint(with: tables(copy)) }
        _ = try await store.write { transaction in
            transaction.delete(bytes("a"))
            transaction.delete(bytes("z"))
        }
        #expect(try values(store) == Self.expected())
    }

    /// The tables of the other families contain less than a row.
    private func rowTables(_ path: String) throws -> Set<String> {
        try Set(
            tables(path).filter { table in
                // A table may have been rewritten and removed since the folder was listed.
                let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(path)/rocksdb/\(table)"))
                return bytes?.range(of: Data("n/10".utf8)) != nil
            })
    }

    /// A filter with a wrong bit would deny a row that exists. RocksDB does without it.
    @Test func aDamagedFilterIsFoundAndHidesNoRow() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            try await writeStore(path)
            let table = try #require(
                TableFile.all(in: path + "/rocksdb").max { $0.sound.count < $1.sound.count })
            #expect(table.filter.count >= Self.rows)
            for place in stride(from: table.filter.lowerBound, to: table.filter.upperBound, by: 11) {
                try table.flipBit(at: place)
                let damage = damage(path)
                #expect(damage.count == 1 && damage[0].contains(table.name), "\(place): \(damage)")
                // A copy: an open store may compact its tables.
                let copy = folder.path("copy")
                try FileManager.default.copyItem(atPath: path, toPath: copy)
                defer { try? FileManager.default.removeItem(atPath: copy) }
                let store = try RocksDBStore.open(folder: copy, options: .small)
                let snapshot = try store.snapshot()
                for number in 0..<Self.rows {
                    let value = number < 20 ? bytes("new") : (90..<110).contains(number) ? Self.noise(number) : nil
                    #expect(try snapshot.get(Self.key(number).span) == value, "row \(number), bit at \(place)")
                }
                store.close()
                try table.mend(at: place)
            }
            #expect(damage(path) == [])
        }
    }

    /// The open store has its reads in memory; the check reads the disk.
    @Test func anOpenStoreFindsWhatItsCachesHide() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            try await writeStore(path)
            let store = try RocksDBStore.open(folder: path, options: .small)
            defer { store.close() }
            #expect(try values(store) == Self.expected())
            var rows = 0
            let none = try store.findDamage { rows += $0 }
            #expect(none == [])
            // Including covered rows.
            #expect(rows >= Self.rows)
            for table in try rowTables(path).map({ try TableFile("\(path)/rocksdb/\($0)") }) {
                for place in [0, table.sound.count / 2, table.filter.lowerBound + 9, table.sound.count - 4] {
                    try table.flipBit(at: place)
                    let damage = try store.findDamage { _ in }
                    #expect(damage.count == 1)
                    #expect(damage.contains { "\($0)".contains("\(path)/rocksdb") }, "\(damage)")
                    #expect(damage.contains { "\($0)".contains(table.name) }, "\(damage)")
                    try table.mend(at: place)
                }
            }
            let noneAgain = try store.findDamage { _ in }
            #expect(noneAgain == [])
            #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/copying").isEmpty)
            #expect(try await store.put(["a": "1"]) == 3)
        }
    }

    @Test func aStoreThatClosesEndsTheCheck() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            _ = try await store.write { transaction in
                for number in 0..<20_000 { transaction.put(bytes("k\(number)"), bytes("")) }
            }
            try store.database.writeOut()
            var tables = 0
            #expect(throws: StoreError.closed(cause: nil)) {
                try store.findDamage { _ in
                    tables += 1
                    store.close()
                }
            }
            #expect(tables == 1)
        }
    }
}
