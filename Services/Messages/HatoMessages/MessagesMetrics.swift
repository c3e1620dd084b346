import Metrics

/// What this service counts and measures; names are those of Prometheus.
final class MessagesMetrics: Sendable {
    private let commitLatency = Timer(label: "hato_messages_commit_seconds")
    private let groupSize = Recorder(label: "hato_messages_group_commits", dimensions: [], aggregate: true)
    private let commitCount = Counter(label: "hato_messages_commits_total")
    private let refusedWrites = Counter(label: "hato_messages_refused_writes_total")
    private let reads = Counter(label: "hato_messages_reads_total")
    private let events = Counter(label: "hato_messages_events_total")
    private let catchUps = Counter(label: "hato_messages_catch_ups_total")
    private let changes = Counter(label: "hato_messages_changes_total")
    private let listeners = Gauge(label: "hato_messages_listeners")
    private let followers = Gauge(label: "hato_messages_followers")
    private let onDisconnectEntries = Gauge(label: "hato_messages_on_disconnect_entries")
    private let onDisconnectWritten = Counter(label: "hato_messages_on_disconnect_written_total")
    private let onDisconnectDropped = Counter(label: "hato_messages_on_disconnect_dropped_total")
    private let onDisconnectFound = Counter(label: "hato_messages_on_disconnect_found_total")
    private let version = Gauge(label: "hato_messages_version")

    /// A write is durable; `latency` counts from its arrival.
    func wrote(after latency: Duration) { commitLatency.record(duration: latency) }

    func refusedWrite() { refusedWrites.increment() }

    /// So many commits shared one sync.
    func committed(group count: Int, through newest: UInt64) {
        commitCount.increment(by: count)
        groupSize.record(count)
        version.record(newest)
    }

    func didRead() { reads.increment() }

    /// So many notifications were handed to connections.
    func sentEvents(_ count: Int) { events.increment(by: count) }

    /// A listener whose socket was full, or that just began, was brought up to date.
    func caughtUp() { catchUps.increment() }

    func sentChanges(_ count: Int) { changes.increment(by: count) }

    func listening(_ count: Int) { listeners.record(count) }

    func following(_ count: Int) { followers.record(count) }

    /// So many places wait for the end of a connection.
    func keepsOnDisconnect(_ count: Int) { onDisconnectEntries.record(count) }

    /// So many places were left by a run of the service that is gone.
    func foundOnDisconnect(_ count: Int) { onDisconnectFound.increment(by: count) }

    /// So many places were written because a connection ended.
    func wroteOnDisconnect(_ count: Int) { onDisconnectWritten.increment(by: count) }

    /// A place was not: the rules, or what had become of it, did not let it.
    func droppedOnDisconnect() { onDisconnectDropped.increment() }
}
