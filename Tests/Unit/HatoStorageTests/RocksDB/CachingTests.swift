import HatoRocksDB
import HatoStorage
import Testing

@Suite("The block cache of a RocksDB store") struct CachingTests {
    @Test func whoReadsOnceLeavesItToOthers() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let written = try RocksDBStore.open(folder: path, options: .small)
            for page in 0..<10 {
                _ = try await written.write { transaction in
                    for row in 100..<200 {
                        let text = String((0..<1_000).map { _ in Character(UnicodeScalar(UInt8.random(in: 33..<127))) })
                        transaction.put("\(page)/\(row)", text)
                    }
                }
            }
            written.close()
            // Opening it writes what is in memory into files.
            let store = try RocksDBStore.open(folder: path, options: .small)
            defer { store.close() }
            func cached() throws -> Double { try #require(store.statistics["rocksdb.block_cache_bytes"]) }
            let snapshot = try store.snapshot()
            let before = try cached()
            let rows = try snapshot.uncached.rows()
            #expect(rows.count == 1_000)
            #expect(try cached() - before < 100_000)
            #expect(try snapshot.rows() == rows)
            #expect(try cached() - before > 800_000)
        }
    }
}
