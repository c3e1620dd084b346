import Metrics

/// The statistics of a store (`rocksdb.memtable_bytes`) as gauges of its service
/// (`hato_messages_store_memtable_bytes`).
public final class StoreFigures: Sendable {
    /// The published statistics and the suffixes of their gauge names. A statistic that a store does not have is 0.
    private static let shown = [
        "store.waiting_writes": "waiting_writes",
        "store.waiting_reads": "waiting_reads",
        "rocksdb.live_bytes": "store_live_bytes",
        "rocksdb.files_bytes": "store_files_bytes",
        "rocksdb.memtable_bytes": "store_memtable_bytes",
        "rocksdb.block_cache_bytes": "store_block_cache_bytes",
        "rocksdb.table_reader_bytes": "store_table_reader_bytes",
        "rocksdb.pending_compaction_bytes": "store_pending_compaction_bytes",
        "rocksdb.rows_estimate": "store_rows",
        "rocksdb.snapshots": "store_snapshots",
        "rocksdb.running_compactions": "store_running_compactions",
        "rocksdb.is_write_stopped": "store_write_stopped",
        "store.kept_changes": "store_kept_changes",
        "store.kept_change_bytes": "store_kept_change_bytes",
    ]

    private let gauges: [(name: String, gauge: Gauge)]
    private let statistics: @Sendable () -> [String: Double]

    /// - Parameter statistics: as `Store.statistics` has them.
    public init(of service: String, _ statistics: @escaping @Sendable () -> [String: Double]) {
        self.statistics = statistics
        gauges = Self.shown.map { ($0.key, Gauge(label: "hato_\(service)_\($0.value)")) }
    }

    /// Reads the statistics of the store and sets the gauges.
    public func refresh() {
        let statistics = statistics()
        for (name, gauge) in gauges { gauge.record(statistics[name] ?? 0) }
    }
}
