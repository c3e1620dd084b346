public import HatoModel
import HatoRules

/// Every limit of this service, each with its name, its default and what it protects. The line, batch and connection
/// limits are those of the RPC server.
public struct MessagesLimits: Limits, Hashable {
    /// Bytes of one response or one first event; larger ones are `too_big`: page, query or export (protocol §1).
    /// Follows the limit of the wire.
    public var responseBytesMax = 16 << 20
    /// Rows that a read may take before it is counted as a large one, of which few run at a time; so also a catch-up
    /// read. Events of a topic that take more on a reader's thread are computed by a long read. So many rows take
    /// some milliseconds.
    public var unreservedReadRowsMax = 2_000
    /// Listeners of one connection.
    public var listenersPerConnectionMax = 10_000
    /// Listeners of one user, or of one address without a signed-in user; those of administrators are not counted.
    public var listenersPerClientMax = 100_000
    /// Listeners of the service.
    public var listenersMax = 1_000_000
    /// Bytes of the listeners of one user, or of one address without a signed-in user: path, query, claims of the token
    /// and what the rules have read. Those of administrators are not counted.
    public var listenersClientBytesMax = 48 << 20
    /// The same of all listeners, those of administrators too; what several share counts once.
    public var listenersServiceBytesMax = 192 << 20
    /// Followers of one connection.
    public var followersPerConnectionMax = 16
    /// Followers of the service.
    public var followersMax = 256
    /// Patterns of one follower.
    public var patternsPerFollowerMax = 100
    /// Bytes of one merged notification that brings a slow listener up to date from the feed; above, it gets the whole
    /// value.
    public var catchUpBytesMax = 1 << 20
    /// Listeners of one user, or of one address without a signed-in user, that are being opened at one time.
    public var openingsPerClientMax = 64
    /// Readings that bring listeners of one connection up to date at one time.
    public var catchUpsPerConnectionMax = 8
    /// The same of one user, or of one address without a signed-in user.
    public var catchUpsPerClientMax = 16
    /// The same of the service.
    public var catchUpsMax = 64
    /// How many of them may take more than 64 KiB, or more than `unreservedReadRowsMax` rows, at one time; one of each
    /// client.
    public var largeCatchUpsMax = 8
    /// Events of at least so many bytes are in memory once for all their receivers; the budget of the process counts
    /// them; a copy of a smaller one for each costs less.
    public var sharedEventBytesMin = 4 << 10
    /// Milliseconds that a listener may gather events (`coalesceMs`).
    public var coalesceMsMax = 10_000
    /// Rows that the publisher's thread reads for the events of one topic in one group of commits; events that take
    /// more are made on a reader's thread. So many rows take about 1 ms.
    public var eventRowsMax = 1_000
    /// Milliseconds for which the publisher's thread computes the events of one group of commits before other work has
    /// its turn; those of the topics that are left come in later turns.
    public var eventsTurnMs = 10
    /// Topics whose events are computed on readers' threads by short reads at one time; one of each client.
    public var topicUpdatesMax = 16
    /// The same by long reads.
    public var longTopicUpdatesMax = 2
    /// Milliseconds for which the publisher's thread authorises listeners again after commits that may have changed
    /// their rights, before other work has its turn; at least one verdict is found in a turn.
    public var rightsTurnMs = 5
    /// Milliseconds for the evaluation of the rights of one client that depend on the time, in one round; rounds are a
    /// second apart. The others of them come first in the next round.
    public var rightsClientMs = 50
    /// Commits that are searched for what a resuming listener missed; beyond, it gets the whole value.
    public var resumeCommitsMax = 50_000
    /// Bytes of their records.
    public var resumeBytesMax = 64 << 20
    /// Databases of the service.
    public var databasesMax = 1_000
    /// Bytes of a rules text; never more than the rules language itself takes (spec §1: 256 KB documented, production
    /// takes a little more).
    public var rulesBytesMax = RulesLimits.documentBytesMax
    /// Indexes that the rules of one database may declare.
    public var indexesPerDatabaseMax = 200
    /// Steps that one rule may take; a step is some 10 to 20 ns. One that would take more is false.
    public var rulesStepsMax = RulesStepLimits().ruleStepsMax
    /// Steps that all rules of one operation may take together; when they are used up, every further rule is false.
    public var rulesOperationStepsMax = RulesStepLimits().operationStepsMax
    /// Rules that a refusal lists for an administrator who acts as a user, and that `messages.rules.check` lists:
    /// the last that were evaluated; each takes some hundred bytes.
    public var refusalTraceMax = 1_000
    /// Children that one commit of the background index build reads and writes.
    public var indexBuildPageRows = 500
    /// Milliseconds; operations that take longer are logged; 0: none.
    public var slowOperationMs = 100
    /// Lines a minute about them; the log has the number of those left out.
    public var slowOperationLinesMax = 20
    /// Values of one write: each takes some 250 bytes while the write is prepared. `serve` allows fewer where
    /// `memory-bytes` is low.
    public var writeValuesMax = 4_000_000
    /// Writes of one client a second; 0: no limit. (Firebase: 1,000 of a whole database, spec §1.)
    public var clientWritesPerSecondMax = 0
    /// Bytes of writes of one client a minute; 0: no limit. (Firebase: 64 MB of a whole database, spec §1.)
    public var clientBytesPerMinuteMax = 0
    /// Paths of one `update`.
    public var updatePathsMax = 10_000
    /// Paths of the onDisconnect writes of one connection.
    public var onDisconnectEntriesMax = 1_000
    /// Bytes of them, about.
    public var onDisconnectBytesMax = 1 << 20
    /// The same of all connections of one user, or of one address without a signed-in user; those of administrators are
    /// not counted.
    public var onDisconnectClientBytesMax = 16 << 20
    /// The same of all connections together.
    public var onDisconnectServiceBytesMax = 64 << 20
    /// Rows of one page of an export.
    public var exportRowsMax = 10_000
    /// Exports that may hold a snapshot at one time.
    public var exportSnapshotsMax = 16
    /// Milliseconds after which an unused export ends.
    public var exportIdleMs = 600_000
    /// Rows of one import call, which is one commit: so many take the writer some 70 ms. A page of an export fits.
    public var importRowsMax = 10_000
    /// How long change records are kept.
    public var changeAgeHoursMax = 7 * 24
    /// How many bytes of change records are kept.
    public var changeBytesMax = 10 << 30
    /// Matches of one pattern in one commit that are sent to a follower one by one.
    public var followMatchesMax = 1_000

    /// Findings that one check of the store lists; the others are counted.
    public var verifyFindingsMax = 1_000
    /// Seconds between two deletions of change records that are too old or too many, and of unused exports.
    public var upkeepSeconds = 60

    public init() {}

    /// A hundred years at most.
    static let hours = 1...876_000
    private static let counts = 1...1_000_000_000

    public static let all: [Limit<MessagesLimits>] = [
        Limit(
            "unreserved-read-rows-max", \.unreservedReadRowsMax, counts,
            "rows a read may read before it counts as a large read, of which few run at a time"),
        Limit("listeners-per-connection-max", \.listenersPerConnectionMax, counts, "listeners of one connection"),
        Limit(
            "listeners-per-client-max", \.listenersPerClientMax, counts,
            "listeners of one user or, without a signed-in user, of one address"),
        Limit("listeners-max", \.listenersMax, counts, "listeners of the service"),
        Limit(
            "listeners-client-bytes-max", \.listenersClientBytesMax, 1...(1 << 40),
            "bytes of the listeners of one user or, without a signed-in user, of one address"),
        Limit("listeners-service-bytes-max", \.listenersServiceBytesMax, 1...(1 << 40), "bytes of all listeners"),
        Limit("followers-per-connection-max", \.followersPerConnectionMax, counts, "followers of one connection"),
        Limit("followers-max", \.followersMax, counts, "followers of the service"),
        Limit("patterns-per-follower-max", \.patternsPerFollowerMax, counts, "patterns of one follower"),
        Limit(
            "catch-up-bytes-max", \.catchUpBytesMax, 1...(1 << 30),
            "bytes of one merged notification that brings a slow listener up to date; above, it gets the whole value"),
        Limit(
            "openings-per-client-max", \.openingsPerClientMax, 1...100_000,
            "listeners of one user or, without a signed-in user, of one address that are being opened at one time"),
        Limit(
            "catch-ups-per-connection-max", \.catchUpsPerConnectionMax, 1...1_000,
            "catch-up reads of one connection at a time"),
        Limit(
            "catch-ups-per-client-max", \.catchUpsPerClientMax, 1...1_000,
            "catch-up reads of one user or, without a signed-in user, of one address at a time"),
        Limit(
            "catch-ups-max", \.catchUpsMax, 1...10_000, "catch-up reads of the service at a time"),
        Limit(
            "large-catch-ups-max", \.largeCatchUpsMax, 1...1_000,
            "catch-up reads of more than 64 KiB, or of many rows (`unreserved-read-rows-max`), at a time"),
        Limit(
            "shared-event-bytes-min", \.sharedEventBytesMin, 1...(1 << 30),
            "bytes from which on an event is in memory once for all its receivers"),
        Limit("coalesce-ms-max", \.coalesceMsMax, 1...3_600_000, "the longest coalesceMs of a listener"),
        Limit(
            "event-rows-max", \.eventRowsMax, counts, "rows read on the publisher's thread for the events of one topic"),
        Limit(
            "events-turn-ms", \.eventsTurnMs, 0...10_000,
            "milliseconds for which the events of one group of commits are computed on the publisher's thread"),
        Limit(
            "topic-updates-max", \.topicUpdatesMax, 1...1_000,
            "topics whose events are computed on readers' threads at one time by short reads"),
        Limit(
            "long-topic-updates-max", \.longTopicUpdatesMax, 1...1_000,
            "topics whose events are computed on readers' threads at one time by long reads"),
        Limit(
            "rights-turn-ms", \.rightsTurnMs, 0...10_000,
            "milliseconds for which listeners are authorised again at a time when what their rights depend on has changed"
        ),
        Limit(
            "rights-client-ms", \.rightsClientMs, 1...100_000,
            "milliseconds a second in which the read rights of one client that depend on the time are evaluated"),
        Limit("resume-commits-max", \.resumeCommitsMax, counts, "commits searched for what a resuming listener missed"),
        Limit("resume-bytes-max", \.resumeBytesMax, 1...(1 << 40), "bytes of the change records of these commits"),
        Limit("databases-max", \.databasesMax, counts, "databases of the service"),
        Limit("rules-bytes-max", \.rulesBytesMax, 1...RulesLimits.documentBytesMax, "bytes of a rules text"),
        Limit("rules-steps-max", \.rulesStepsMax, counts, "steps one rule may take; one that would take more is false"),
        Limit(
            "rules-operation-steps-max", \.rulesOperationStepsMax, counts, "steps all rules of one operation may take"),
        Limit(
            "refusal-trace-max", \.refusalTraceMax, counts,
            "rules listed by messages.rules.check, and by a refusal of an administrator's request with `as`"),
        Limit("indexes-per-database-max", \.indexesPerDatabaseMax, counts, "indexes of one database"),
        Limit("index-build-page-rows", \.indexBuildPageRows, counts, "children one commit of an index build handles"),
        Limit(
            "slow-operation-ms", \.slowOperationMs, 0...3_600_000,
            "milliseconds; operations that take longer are logged, with the reason; 0: none"),
        Limit("slow-operation-lines-max", \.slowOperationLinesMax, 1...100_000, "lines a minute about slow operations"),
        Limit(
            "write-values-max", \.writeValuesMax, counts,
            "values of one write; each takes some 250 bytes while the write is prepared"),
        Limit(
            "client-writes-per-second-max", \.clientWritesPerSecondMax, 0...1_000_000,
            "writes of one user or, without a signed-in user, of one address a second; 0: no limit"),
        Limit(
            "client-bytes-per-minute-max", \.clientBytesPerMinuteMax, 0...(1 << 40),
            "bytes of writes of one user or, without a signed-in user, of one address a minute; 0: no limit"),
        Limit("update-paths-max", \.updatePathsMax, counts, "paths of one update"),
        Limit(
            "on-disconnect-entries-max", \.onDisconnectEntriesMax, counts,
            "paths of the onDisconnect writes of one connection"),
        Limit(
            "on-disconnect-bytes-max", \.onDisconnectBytesMax, counts,
            "bytes of the onDisconnect writes of one connection"),
        Limit(
            "on-disconnect-client-bytes-max", \.onDisconnectClientBytesMax, counts,
            "bytes of the onDisconnect writes of one user or, without a signed-in user, of one address"),
        Limit(
            "on-disconnect-service-bytes-max", \.onDisconnectServiceBytesMax, counts, "bytes of all onDisconnect writes"
        ),
        Limit("export-rows-max", \.exportRowsMax, counts, "rows of one page of an export"),
        Limit("export-snapshots-max", \.exportSnapshotsMax, counts, "exports at one time"),
        Limit("export-idle-ms", \.exportIdleMs, 1...86_400_000, "milliseconds after which an unused export ends"),
        Limit("import-rows-max", \.importRowsMax, counts, "rows of one import call"),
        Limit("change-age-hours-max", \.changeAgeHoursMax, hours, "hours that change records are kept"),
        Limit("change-bytes-max", \.changeBytesMax, 1...(1 << 50), "bytes of change records that are kept"),
        Limit(
            "follow-matches-max", \.followMatchesMax, counts,
            "matches of one pattern in one commit that are sent to a follower one by one"),
        Limit("verify-findings-max", \.verifyFindingsMax, 1...100_000, "findings that one check of the store lists"),
        Limit(
            "upkeep-seconds", \.upkeepSeconds, 1...3_600,
            "seconds between two deletions of old changes and unused exports"),
    ]
}
