import HatoStorage
import Testing

@testable import HatoRocksDB

@Suite("Buffers of a RocksDB store's writer")
struct BufferTests {
    /// Settles a group; returns whether the next one uses the same batch.
    private func keepsBatch(of writes: GatheredWrites, in database: RocksDatabase, rowBytes: Int) throws -> Bool {
        let before = writes.batch.handle
        let (key, value) = (bytes("k"), [UInt8](repeating: 7, count: rowBytes))
        writes.rows.put(key.span, value.span)
        let isInOrder = writes.rows.apply()
        #expect(isInOrder)
        writes.noteApplied(1)
        writes.rows.handOver(to: writes.batch)
        try database.write(writes.batch)
        writes.rows.removeAll()
        writes.noteWritten()
        return writes.batch.handle == before
    }

    @Test func buffersOfALargeGroupAreFreed() async throws {
        try await TemporaryFolder.with { folder in
            let database = try RocksDatabase(folder: folder.path("database"), memory: RocksDBOptions.small.memory)
            defer { database.close() }
            let writes = GatheredWrites(for: database)
            let small = try keepsBatch(of: writes, in: database, rowBytes: 1_000)
            #expect(small && writes.rows.bufferBytes > 0)
            let large = try keepsBatch(of: writes, in: database, rowBytes: 16 << 20)
            #expect(!large && writes.rows.bufferBytes == 0)
            let smallAgain = try keepsBatch(of: writes, in: database, rowBytes: 1_000)
            #expect(smallAgain && writes.rows.bufferBytes > 0)
        }
    }

    @Test func bufferOfALargeTransactionThatThrewIsFreed() {
        var rows = PendingRows()
        let (key, value) = (bytes("k"), [UInt8](repeating: 7, count: 16 << 20))
        rows.put(key.span, value.span)
        rows.discard()
        rows.removeAll()
        #expect(rows.bufferBytes == 0)
    }
}
