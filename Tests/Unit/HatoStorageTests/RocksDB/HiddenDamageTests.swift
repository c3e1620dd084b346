import Foundation
import HatoStorage
import HatoTesting
import Testing

@testable import HatoRocksDB

/// Blocks that no read comes to: what hides them must not hide that they are damaged, since RocksDB meets them when it
/// rewrites their file, and the store then ends.
@Suite("Damage that is hidden in a RocksDB store", .timeLimit(.minutes(20)))
struct HiddenDamageTests {
    private static let rows = 200

    private static func key(_ number: Int) -> [UInt8] { bytes("n/\(1_000 + number)") }

    /// Rows of a kilobyte that do not compress.
    private static func noise(_ number: Int) -> [UInt8] {
        var random = SeededRandom(seed: UInt64(number))
        return (0..<1_024).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// Most rows are covered by range tombstones that lie in younger tables: a hole as a dropped index leaves it, and
    /// all from a key on, as a dropped database; some rows lie in two tables. Nothing is left in the log.
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

    private func tables(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path + "/rocksdb").filter { $0.hasSuffix(".sst") }.sorted()
    }

    /// What the inspection says of the folder, whether it can be opened or not.
    private func damage(_ path: String) -> [String] {
        do {
            let inspection = try RocksDBInspection(folder: path)
            defer { inspection.close() }
            return try inspection.findDamage {}.map { "\($0)" }
        } catch {
            return ["\(error)"]
        }
    }

    /// Where they begin: what lies before them are rows.
    private func descriptions(_ count: Int) -> Int { max(0, count - 1_600) }

    /// Every 1,021 bytes, so that the places within blocks differ, and closely where tables are described.
    private func places(_ count: Int) -> [Int] {
        let tail = descriptions(count)
        return Array(stride(from: 0, to: tail, by: 1_021)) + Array(stride(from: tail, to: count, by: 13))
    }

    @Test func everyFlippedBitIsFoundOrHarmsNobody() async throws {
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
                        harmless[place] ^= 0x04
                        passed += 1
                    } else {
                        // Of a table whose description makes no sense RocksDB does not always say which it is.
                        let isNamed = text.contains { $0.contains(table) }
                        #expect(isNamed || place >= descriptions(whole.count), "\(table) at \(place): \(text)")
                        found += 1
                    }
                }
                try harmless.write(to: file)
                // All of them at once, and each table by itself.
                try await expectItIsRewritten(path, to: folder.path(table))
                try whole.write(to: file)
            }
            print("flipped bits: \(found) found, \(passed) in filters and padding")
            #expect(found > 200 && passed < found / 4)
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
        // Tables that cover all others, until there are enough for a compaction.
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

    /// Those of the other families hold less than a row.
    private func rowTables(_ path: String) throws -> Set<String> {
        try Set(
            tables(path).filter { table in
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(path)/rocksdb/\(table)"))
                return bytes.range(of: Data("n/10".utf8)) != nil
            })
    }

    /// What the open store has read is in its memory; the check looks at the disk.
    @Test func anOpenStoreFindsWhatItsCachesHide() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            try await writeStore(path)
            let store = try RocksDBStore.open(folder: path, options: .small)
            defer { store.close() }
            #expect(try values(store) == Self.expected())
            var rows = 0
            let none = try store.findDamage { rows += 1 }
            #expect(none == [])
            // Those that are covered as well; the newest of each key once.
            #expect(rows >= Self.rows)
            for table in try rowTables(path) {
                let file = URL(fileURLWithPath: "\(path)/rocksdb/\(table)")
                let whole = try Data(contentsOf: file)
                for place in [0, whole.count / 2, whole.count - 4] {
                    try write(whole[place] ^ 0x04, at: place, of: file)
                    let damage = try store.findDamage {}
                    #expect(damage.count == 1)
                    #expect(damage.contains { "\($0)".contains("\(path)/rocksdb") }, "\(damage)")
                    #expect(damage.contains { "\($0)".contains(table) }, "\(damage)")
                    try write(whole[place], at: place, of: file)
                }
            }
            let noneAgain = try store.findDamage {}
            #expect(noneAgain == [])
            #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/copying").isEmpty)
            #expect(try await store.put(["a": "1"]) == 3)
        }
    }

    /// In place: the store has the file open.
    private func write(_ byte: UInt8, at place: Int, of file: URL) throws {
        let handle = try FileHandle(forWritingTo: file)
        try handle.seek(toOffset: UInt64(place))
        try handle.write(contentsOf: [byte])
        try handle.close()
    }

    @Test func aStoreThatClosesEndsTheCheck() async throws {
        try await TemporaryFolder.with { folder in
            let store = try RocksDBStore.open(folder: folder.path("store"), options: .small)
            _ = try await store.write { transaction in
                for number in 0..<20_000 { transaction.put(bytes("k\(number)"), bytes("")) }
            }
            try store.database.writeOut()
            var rows = 0
            #expect(throws: StoreError.closed(cause: nil)) {
                try store.findDamage {
                    rows += 1
                    if rows == 1 { store.close() }
                }
            }
            #expect(rows < 5_000)
        }
    }
}
