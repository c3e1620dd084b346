public import HatoStorage

/// The options for opening one store.
public struct RocksDBOptions: Sendable {
    /// Bounds of the store.
    public var limits = StoreLimits()
    /// Memory of RocksDB.
    public var memory = RocksDBMemory()
    /// The store's part of the memtables of `memory`, 0...1.
    public var memtableShare = 1.0

    /// Bytes of zeros that are written ahead in the log, so that a sync changes no file size: a sync takes half as
    /// long, and the log is written twice. Fewer while the log is small, and none while writes come in large groups. 0:
    /// never.
    public var preparedLogBytes = 4 << 20

    /// Opens a store although commits are missing from it, at its end or in the middle, and gives it a new epoch, since
    /// the remaining commits are another history. For an operator who has seen `StoreError.lostCommits`, or which
    /// commits are missing, and has no better copy.
    public var acceptsLostCommits = false
    /// The rows that a restored store does not have.
    public var restoredWithout: [KeyRange] = []

    public init() {}
}

/// The memory that the stores of one process share.
public final class RocksDBMemory: Sendable {
    /// The block cache unless a setting says otherwise: 256 MiB.
    public static let blockCacheBytes = 256 << 20
    /// All memtables unless a setting says otherwise: 128 MiB.
    public static let memtableBytes = 128 << 20

    let cache: BlockCache
    /// RocksDB 7.8 lets C programs share a cache but no write buffers: every store gets its share.
    let memtableBytes: Int

    public init(
        blockCacheBytes: Int = RocksDBMemory.blockCacheBytes, memtableBytes: Int = RocksDBMemory.memtableBytes
    ) {
        cache = BlockCache(bytes: blockCacheBytes)
        self.memtableBytes = memtableBytes
    }
}
