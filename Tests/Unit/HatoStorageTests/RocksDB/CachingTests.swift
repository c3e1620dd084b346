import HatoRocksDB
import HatoStorage
import Testing

@Suite("The block cache of a RocksDB store") struct CachingTests {
    @Test func uncachedScanLeavesTheCacheUnchanged() async throws {
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
            // Opening flushes the memtables.
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

    /// A value that is not cached is read from its file and decompressed by every read.
    @Test func aLongValueStaysAsItWasRead() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let written = try RocksDBStore.open(folder: path)
            let value = [UInt8](repeating: 120, count: 10_000_000)
            _ = try await written.write { $0.put(bytes("a"), value) }
            written.close()
            let store = try RocksDBStore.open(folder: path)
            defer { store.close() }
            #expect(try store.snapshot().get(bytes("a").span) == value)
            #expect(try #require(store.statistics["rocksdb.block_cache_bytes"]) > 10_000_000)
        }
    }

    @Test func sizeOfARangeIsEstimatedFromItsFiles() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("store")
            let written = try RocksDBStore.open(folder: path, options: .small)
            _ = try await written.write { transaction in
                for row in 100..<500 {
                    let text = String((0..<1_000).map { _ in Character(UnicodeScalar(UInt8.random(in: 33..<127))) })
                    transaction.put("a/\(row)", text)
                }
            }
            written.close()
            let store = try RocksDBStore.open(folder: path, options: .small)
            defer { store.close() }
            let snapshot = try store.snapshot()
            func bytes(_ lower: String, _ upper: String) throws -> Double {
                Double(try snapshot.approximateBytes(of: KeyRange(lower: Array(lower.utf8), upper: Array(upper.utf8))))
            }
            let all = try bytes("a/", "a0")
            #expect(all > 200_000 && all < 800_000)
            for quarter in [1, 2, 3] {
                let part = try bytes("a/", "a/\(100 + 100 * quarter)") / all
                #expect(abs(part - Double(quarter) / 4) < 0.1, "\(part) of \(quarter) quarters")
            }
            #expect(try bytes("b", "c") == 0 && bytes("c", "b") == 0)
            #expect(try snapshot.bytes(of: .all) == 400 * 1_005)
            #expect(try snapshot.approximateBytes(of: .all) > 200_000)
        }
    }
}
