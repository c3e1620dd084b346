import Metrics

/// What this service counts and measures; names are those of Prometheus, each explained in the service's README.
///
/// Labels have few values and never say who or where. What is counted as it happens costs an atomic addition or two;
/// the rest is looked at when a scraper asks (`MessagesServer.refreshFigures`).
final class MessagesMetrics: Sendable {
    // MARK: Writes

    private let commitLatency = Timer(label: "hato_messages_commit_seconds")
    private let syncTime = Timer(label: "hato_messages_sync_seconds")
    private let groupSize = Recorder(label: "hato_messages_group_commits", dimensions: [], aggregate: true)
    private let commitCount = Counter(label: "hato_messages_commits_total")
    private let refusedWrites = Counter(label: "hato_messages_refused_writes_total")
    private let version = Gauge(label: "hato_messages_version")

    /// A write is durable; `latency` counts from its arrival.
    func wrote(after latency: Duration) { commitLatency.record(duration: latency) }

    func refusedWrite() { refusedWrites.increment() }

    /// So many commits shared one sync, which took so long.
    func committed(group count: Int, through newest: UInt64, in sync: Duration) {
        commitCount.increment(by: count)
        groupSize.record(count)
        syncTime.record(duration: sync)
        version.record(newest)
    }

    // MARK: Reads

    private let reads = Counter(label: "hato_messages_reads_total")

    func didRead() { reads.increment() }

    // MARK: Rules

    private let rulesAllowed = Counter(
        label: "hato_messages_rules_evaluations_total", dimensions: [("result", "allowed")])
    private let rulesDenied = Counter(
        label: "hato_messages_rules_evaluations_total", dimensions: [("result", "denied")])
    private let rulesStepLimits = Counter(label: "hato_messages_rules_step_limits_total")
    private let rulesTime = Timer(label: "hato_messages_rules_seconds")

    /// Rules were asked about one operation.
    func rulesEvaluated(isAllowed: Bool, hasReachedStepLimit: Bool, in duration: Duration) {
        (isAllowed ? rulesAllowed : rulesDenied).increment()
        if hasReachedStepLimit { rulesStepLimits.increment() }
        rulesTime.record(duration: duration)
    }

    // MARK: Listeners

    private let listeners = Gauge(label: "hato_messages_listeners")
    private let listenerBytes = Gauge(label: "hato_messages_listener_bytes")
    private let listenersBehind = Gauge(label: "hato_messages_listeners_behind")
    private let windows = Gauge(label: "hato_messages_windows")
    private let events = Counter(label: "hato_messages_events_total")
    private let eventBytes = Counter(label: "hato_messages_event_bytes_total")
    private let fellBehindCount = Counter(label: "hato_messages_fell_behind_total")
    private let catchUps = Counter(label: "hato_messages_catch_ups_total")
    private let longEvents = Counter(label: "hato_messages_long_events_total")
    private let evaluatedAuthorisations = Counter(label: "hato_messages_read_rights_judged_total")

    func listening(_ count: Int) { listeners.record(count) }

    /// So many notifications of so many bytes each were handed to connections.
    func sentEvents(_ count: Int, bytes: Int) {
        events.increment(by: count)
        eventBytes.increment(by: count * bytes)
    }

    /// A listener's socket was full.
    func fellBehind() { fellBehindCount.increment() }

    /// A listener whose socket was full, or that just began, was brought up to date.
    func caughtUp() { catchUps.increment() }

    /// Events took so much reading that a reader's thread worked them out.
    func workedElsewhere() { longEvents.increment() }

    /// The rules were asked whether a listener may begin or go on.
    func authorisationEvaluated() { evaluatedAuthorisations.increment() }

    /// - Parameters:
    ///   - windows: results of queries that are kept.
    ///   - bytes: what all listeners take in memory.
    func listening(behind: Int, windows: Int, bytes: Int) {
        listenerBytes.record(bytes)
        listenersBehind.record(behind)
        self.windows.record(windows)
    }

    // MARK: Followers

    private let followers = Gauge(label: "hato_messages_followers")
    private let followersBehind = Gauge(label: "hato_messages_followers_behind")
    private let followerLag = Gauge(label: "hato_messages_follower_lag_versions")
    private let changes = Counter(label: "hato_messages_changes_total")
    private let changeBytes = Counter(label: "hato_messages_change_bytes_total")

    func following(_ count: Int) { followers.record(count) }

    func sentChange(bytes: Int) {
        changes.increment()
        changeBytes.increment(by: bytes)
    }

    /// - Parameter lag: versions that the follower farthest behind lacks.
    func following(behind: Int, lag: UInt64) {
        followersBehind.record(behind)
        followerLag.record(lag)
    }

    // MARK: Ends of connections

    private let onDisconnectEntries = Gauge(label: "hato_messages_on_disconnect_entries")
    private let onDisconnectWritten = Counter(label: "hato_messages_on_disconnect_written_total")
    private let onDisconnectDropped = Counter(label: "hato_messages_on_disconnect_dropped_total")
    private let onDisconnectFound = Counter(label: "hato_messages_on_disconnect_found_total")

    /// So many places wait for the end of a connection.
    func keepsOnDisconnect(_ count: Int) { onDisconnectEntries.record(count) }

    /// So many places were left by a run of the service that is gone.
    func foundOnDisconnect(_ count: Int) { onDisconnectFound.increment(by: count) }

    /// So many places were written because a connection ended.
    func wroteOnDisconnect(_ count: Int) { onDisconnectWritten.increment(by: count) }

    /// A place was not: the rules, or what had become of it, did not let it.
    func droppedOnDisconnect() { onDisconnectDropped.increment() }

    // MARK: Databases and indexes

    private let databases = Gauge(label: "hato_messages_databases")
    private let indexBuilds = Gauge(label: "hato_messages_index_builds")
    private let indexBuildPages = Counter(label: "hato_messages_index_build_pages_total")
    private let exports = Gauge(label: "hato_messages_exports")
    private let keysReady = Gauge(label: "hato_messages_keys_ready")

    private let verifyRows = Gauge(label: "hato_messages_verify_rows")

    /// A check of the store has read so many rows and changes; 0 when it is over.
    func verifying(rows: Int) { verifyRows.record(rows) }

    func builtIndexPage() { indexBuildPages.increment() }

    struct Figures {
        var databases = 0
        /// Databases that build an index now.
        var indexBuilds = 0
        /// Exports that hold a snapshot.
        var exports = 0
        var areKeysReady = false
    }

    func show(_ figures: Figures) {
        databases.record(figures.databases)
        indexBuilds.record(figures.indexBuilds)
        exports.record(figures.exports)
        keysReady.record(figures.areKeysReady ? 1 : 0)
    }
}
