import HatoRocksDB
import HatoStorage
import Testing

/// Reads step over every deleted row in the memtable of the range tombstone that covers it, and jump over rows in older
/// memtables.
@Suite("Range tombstones of a RocksDB store") struct TombstoneTests {
    /// Passes the final number of rows and tombstones in the active memtable to `check`.
    private func drop(_ count: Int, _ check: (Double) -> Void) async throws {
        try await TemporaryFolder.with { folder in
            var options = RocksDBOptions()
            options.memory = RocksDBMemory(blockCacheBytes: 4 << 20, memtableBytes: 64 << 20)
            let store = try RocksDBStore.open(folder: folder.path("store"), options: options)
            defer { store.close() }
            _ = try await store.write { transaction in
                for number in 0..<count { transaction.put(bytes("k\(number)"), bytes("")) }
                transaction.put(bytes("z"), bytes("stays"))
            }
            _ = try await store.write { $0.deleteRange(KeyRange(prefix: bytes("k"))) }
            _ = try await store.write { $0.put(bytes("k"), bytes("new")) }
            let snapshot = try store.snapshot()
            var rows: [String] = []
            try snapshot.scan(KeyRange(lower: bytes("a"), upper: nil), reverse: false) { key, _ in
                rows.append(key.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
                return .next
            }
            #expect(rows == ["k", "z"])
            check(try #require(store.statistics["rocksdb.fresh_rows"]))
        }
    }

    @Test func manyDroppedRowsDoNotStayBesideTheirTombstone() async throws {
        try await drop(20_000) { #expect($0 < 100) }
    }

    @Test func fewDroppedRowsAreNotWorthAFile() async throws {
        try await drop(2_000) { #expect($0 > 2_000) }
    }
}
