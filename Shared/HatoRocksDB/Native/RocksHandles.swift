import CRocksDB
import HatoStorage

// Every handle of the C interface is owned by one type in this file. Only this folder calls `rocksdb_…`.

/// Calls RocksDB and throws the message of its error pointer, prefixed with the task and the path, since RocksDB's own
/// messages need knowledge of its internals.
///
/// - Parameters:
///   - task: the operation that failed, e.g. `open the database`.
///   - path: the folder or file of the operation.
func checked<Result>(
    _ task: StaticString, _ path: String, _ call: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) throws(StoreError) -> Result {
    var message: UnsafeMutablePointer<CChar>?
    let result = call(&message)
    guard let message else { return result }
    defer { rocksdb_free(message) }
    let detail = String(cString: message)
    let text = "cannot \(task) in \(path) (RocksDB: \(detail))"
    throw detail.hasPrefix("Corruption") ? .corrupted(text) : .io(text)
}

/// `@unchecked Sendable`: RocksDB's cache has locks of its own; the handle never changes.
final class BlockCache: @unchecked Sendable {
    let handle: OpaquePointer

    /// The minimum size of a shard. A long value is a block of its own. A block larger than its shard is not cached:
    /// every read of it would read its file and decompress it (10 MB: some 10 ms).
    private static let shardBytesMin = 16 << 20
    /// The number of reader threads is small: more shards would not reduce contention.
    private static let shardBitsMax: Int32 = 6

    init(bytes: Int) {
        let options = rocksdb_lru_cache_options_create()
        defer { rocksdb_lru_cache_options_destroy(options) }
        var bits: Int32 = 0
        while bits < Self.shardBitsMax, bytes >> (bits + 1) >= Self.shardBytesMin { bits += 1 }
        rocksdb_lru_cache_options_set_capacity(options, bytes)
        rocksdb_lru_cache_options_set_num_shard_bits(options, bits)
        handle = rocksdb_cache_create_lru_opts(options)
    }

    deinit { rocksdb_cache_destroy(handle) }

    var usedBytes: Int { rocksdb_cache_get_usage(handle) }
}

/// Options of the database or of one of its column families.
struct NativeOptions: ~Copyable {
    let handle: OpaquePointer

    init() { handle = rocksdb_options_create() }

    deinit { rocksdb_options_destroy(handle) }

    /// The table options of every family: LZ4, 10 bits of Bloom filter per key, checksums verified.
    func setTables(cache: BlockCache, writeBufferBytes: Int, writeBuffersMax: Int32) {
        let table = rocksdb_block_based_options_create()
        rocksdb_block_based_options_set_block_cache(table, cache.handle)
        rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10))
        rocksdb_block_based_options_set_format_version(table, 5)
        // Indexes and filters count as cache too: memory stays bounded whatever the size of the data.
        rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1)
        rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1)
        rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1)
        rocksdb_options_set_block_based_table_factory(handle, table)
        rocksdb_block_based_options_destroy(table)
        rocksdb_options_set_compression(handle, Int32(rocksdb_lz4_compression))
        rocksdb_options_set_level_compaction_dynamic_level_bytes(handle, 1)
        rocksdb_options_set_write_buffer_size(handle, writeBufferBytes)
        rocksdb_options_set_max_write_buffer_number(handle, writeBuffersMax)
    }

    /// Disables compactions in the background.
    func compactNothing() { rocksdb_options_set_disable_auto_compactions(handle, 1) }

    func setDatabase(memtableBytes: Int) {
        rocksdb_options_set_create_if_missing(handle, 1)
        rocksdb_options_set_create_missing_column_families(handle, 1)
        rocksdb_options_set_paranoid_checks(handle, 1)
        // "Point in time" would open without an error and drop everything after a flipped bit.
        rocksdb_options_set_wal_recovery_mode(handle, Int32(rocksdb_tolerate_corrupted_tail_records_recovery))
        rocksdb_options_set_db_write_buffer_size(handle, memtableBytes)
        rocksdb_options_set_max_total_wal_size(handle, UInt64(4 * memtableBytes))
        rocksdb_options_set_max_background_jobs(handle, 2)
        rocksdb_options_set_max_open_files(handle, 4096)
        rocksdb_options_set_bytes_per_sync(handle, 1 << 20)
        // Otherwise compaction reads block by block, with a system call for each.
        rocksdb_options_compaction_readahead_size(handle, 2 << 20)
        // Disables RocksDB's own log with a level above its highest: that log is on the same disk, and builds with
        // assertions (Debian's) abort the process at the second line that does not fit. Calls return the errors that
        // matter.
        rocksdb_options_set_info_log_level(handle, 6)
        rocksdb_options_set_max_log_file_size(handle, 4 << 20)
        rocksdb_options_set_keep_log_file_num(handle, 4)
        rocksdb_options_set_stats_dump_period_sec(handle, 0)
        rocksdb_options_set_stats_persist_period_sec(handle, 0)
    }

    /// Reads this log instead of the database's own; it ends at the first record that is not whole.
    func readLog(in folder: String) {
        rocksdb_options_set_wal_dir(handle, folder)
        rocksdb_options_set_wal_recovery_mode(handle, Int32(rocksdb_point_in_time_recovery))
    }
}

/// A version of the database that stays readable until it is released.
///
/// `@unchecked Sendable`: the handle never changes, and RocksDB takes it from every thread.
struct NativeSnapshot: Hashable, @unchecked Sendable {
    let handle: OpaquePointer
}

/// The options of a read: at a snapshot, or at the newest state.
struct NativeReadOptions: ~Copyable {
    let handle: OpaquePointer

    init(snapshot: NativeSnapshot?) {
        handle = rocksdb_readoptions_create()
        if let snapshot { rocksdb_readoptions_set_snapshot(handle, snapshot.handle) }
    }

    /// Skips the files.
    func readMemoryOnly() {
        // kMemtableTier, which has no name in the C interface.
        rocksdb_readoptions_set_read_tier(handle, 3)
    }

    /// Keeps blocks read from files out of the block cache.
    func leaveCache() { rocksdb_readoptions_set_fill_cache(handle, 0) }

    deinit { rocksdb_readoptions_destroy(handle) }
}

/// A file of rows in RocksDB's own format that is being written.
struct NativeFileWriter: ~Copyable {
    private let handle: OpaquePointer
    private let environment: OpaquePointer
    private let options: NativeOptions
    private let path: String

    init(_ path: String, memory: RocksDBMemory) throws(StoreError) {
        let options = NativeOptions()
        options.setTables(cache: memory.cache, writeBufferBytes: 1 << 20, writeBuffersMax: 2)
        let environment: OpaquePointer = rocksdb_envoptions_create()
        let handle: OpaquePointer = rocksdb_sstfilewriter_create(environment, options.handle)
        self.options = options
        self.environment = environment
        self.handle = handle
        self.path = path
        try checked("begin a file of rows", path) { rocksdb_sstfilewriter_open(handle, path, $0) }
    }

    deinit {
        rocksdb_sstfilewriter_destroy(handle)
        rocksdb_envoptions_destroy(environment)
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) throws(StoreError) {
        try key.withUnsafeBytes { key throws(StoreError) in
            try value.withUnsafeBytes { value throws(StoreError) in
                try checked("write a row", path) {
                    hato_file_put(handle, key.baseAddress, key.count, value.baseAddress, value.count, $0)
                }
            }
        }
    }

    func delete(_ key: Span<UInt8>) throws(StoreError) {
        try key.withUnsafeBytes { key throws(StoreError) in
            try checked("delete a row", path) { hato_file_delete(handle, key.baseAddress, key.count, $0) }
        }
    }

    func deleteRange(_ lower: [UInt8], _ upper: [UInt8]) throws(StoreError) {
        try checked("delete rows", path) {
            hato_file_delete_range(handle, lower, lower.count, upper, upper.count, $0)
        }
    }

    /// Ends the file and syncs it.
    func finish() throws(StoreError) {
        try checked("end a file of rows", path) { rocksdb_sstfilewriter_finish(handle, $0) }
    }
}

/// The changes of transactions; it is reused so that its buffer is not allocated for each group.
struct WriteBatch: ~Copyable {
    let handle: OpaquePointer
    private let rows: OpaquePointer
    private let commits: OpaquePointer
    private let about: OpaquePointer

    init(rows: OpaquePointer, commits: OpaquePointer, about: OpaquePointer) {
        handle = rocksdb_writebatch_create()
        self.rows = rows
        self.commits = commits
        self.about = about
    }

    deinit { rocksdb_writebatch_destroy(handle) }

    /// The buffer keeps its size.
    func clear() { rocksdb_writebatch_clear(handle) }

    /// The size of the changes in bytes, as one record of the log.
    var byteCount: Int {
        var count = 0
        _ = rocksdb_writebatch_data(handle, &count)
        return count
    }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                hato_batch_put(handle, rows, key.baseAddress, key.count, value.baseAddress, value.count)
            }
        }
    }

    func delete(_ key: Span<UInt8>) {
        key.withUnsafeBytes { hato_batch_delete(handle, rows, $0.baseAddress, $0.count) }
    }

    func deleteRange(_ lower: Span<UInt8>, _ upper: Span<UInt8>) {
        lower.withUnsafeBytes { lower in
            upper.withUnsafeBytes { upper in
                hato_batch_delete_range(handle, rows, lower.baseAddress, lower.count, upper.baseAddress, upper.count)
            }
        }
    }

    /// Puts metadata of the store.
    func putAboutStore(_ name: [UInt8], _ value: [UInt8]) {
        hato_batch_put(handle, about, name, name.count, value, value.count)
    }

    /// Writes log data, which does not reach the database.
    func noteInLog(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBytes { hato_batch_put_log_data(handle, $0.baseAddress, $0.count) }
    }

    func putCommit(_ version: UInt64, record: [UInt8]) {
        withUnsafeBytes(of: version.bigEndian) { key in
            record.withUnsafeBytes { record in
                hato_batch_put(handle, commits, key.baseAddress, key.count, record.baseAddress, record.count)
            }
        }
    }
}

/// An iterator over the rows of one column family. It must be freed before its snapshot and its database.
struct NativeIterator: ~Copyable {
    private let handle: OpaquePointer

    init(_ database: OpaquePointer, _ options: borrowing NativeReadOptions, _ family: OpaquePointer) {
        handle = rocksdb_create_iterator_cf(database, options.handle, family)
    }

    deinit { rocksdb_iter_destroy(handle) }

    var isAtRow: Bool { rocksdb_iter_valid(handle) != 0 }

    func seekToFirst() { rocksdb_iter_seek_to_first(handle) }
    func seekToLast() { rocksdb_iter_seek_to_last(handle) }
    func seek(_ key: UnsafeRawBufferPointer) { hato_seek(handle, key.baseAddress, key.count) }
    func seekForPrevious(_ key: UnsafeRawBufferPointer) { hato_seek_for_previous(handle, key.baseAddress, key.count) }
    func next() { rocksdb_iter_next(handle) }
    func previous() { rocksdb_iter_prev(handle) }

    /// Valid until the next move.
    var key: UnsafeBufferPointer<UInt8> {
        var count = 0
        return Self.bytes(rocksdb_iter_key(handle, &count), count)
    }

    /// Valid until the next move.
    var value: UnsafeBufferPointer<UInt8> {
        var count = 0
        return Self.bytes(rocksdb_iter_value(handle, &count), count)
    }

    /// Throws the iterator's error: the end of the rows and an error both look like "no row here".
    ///
    /// - Parameter folder: the database's.
    func checkEnd(in folder: String) throws(StoreError) {
        try checked("read the database", folder) { rocksdb_iter_get_error(handle, $0) }
    }

    private static func bytes(_ start: UnsafePointer<CChar>?, _ count: Int) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: UnsafeRawPointer(start)?.assumingMemoryBound(to: UInt8.self), count: count)
    }
}
