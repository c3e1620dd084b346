import HatoRules

/// Every limit of this service, each with its name, its default and what it protects. The line, batch and connection
/// limits are those of the RPC server.
public struct MessagesLimits: Sendable, Hashable {
    /// Bytes of one answer or one first event; larger ones are `too_big`: page, query or export (protocol §1). Follows
    /// the limit of the wire.
    public var responseBytesMax = 16 << 20
    /// Rows that a read may take before it is counted as a large one, of which few run at a time. So many take some
    /// 20 ms of a reader's thread.
    public var unreservedReadRowsMax = 20_000
    /// Listeners of one connection.
    public var listenersPerConnectionMax = 10_000
    /// Listeners of one user, or of one address where nobody is signed in; administrators' are not counted.
    public var listenersPerClientMax = 100_000
    /// Listeners of the service.
    public var listenersMax = 1_000_000
    /// Bytes of the listeners of one user, or of one address where nobody is signed in, each with its path, its query,
    /// the claims of its token and what the rules have looked at; administrators' are not counted.
    public var listenersClientBytesMax = 48 << 20
    /// The same of all listeners, administrators' too; what several share counts once.
    public var listenersServiceBytesMax = 192 << 20
    /// Followers of one connection.
    public var followersPerConnectionMax = 16
    /// Followers of the service.
    public var followersMax = 256
    /// Patterns of one follower.
    public var patternsPerFollowerMax = 100
    /// Bytes of one merged notification that brings a slow listener up to date from the feed; beyond it, a fresh value
    /// does.
    public var catchUpBytesMax = 1 << 20
    /// Events of at least so many bytes are in memory once for all who are sent them, and counted in the budget of the
    /// process; of smaller ones a copy for each costs less.
    public var sharedEventBytesMin = 4 << 10
    /// Milliseconds that a listener may gather events (`coalesceMs`).
    public var coalesceMsMax = 10_000
    /// Rows that the publisher's thread reads for the events of one listened-to thing in one group of commits; what
    /// takes more is worked out on a reader's thread. So many take about 1 ms.
    public var eventRowsMax = 1_000
    /// How long the publisher's thread judges rights to read that commits have put in doubt before others have their
    /// turn; the listeners of the rest wait. At least one is judged in a turn, however long that takes.
    public var rightsTurnMs = 5
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
    /// Rules that a refusal tells an administrator who speaks as somebody, the last that were asked; each takes some
    /// hundred bytes. (`messages.rules.check` tells all.)
    public var refusalTraceMax = 1_000
    /// Children that one commit of the background index build reads and writes.
    public var indexBuildPageRows = 500
    /// Operations that take longer are told to the log; 0: none.
    public var slowOperationMs = 100
    /// Lines a minute about them; how many more there were is said.
    public var slowOperationLinesMax = 20
    /// Values of one write: each takes some 250 bytes while it is made ready, whatever it takes of its line. `serve`
    /// takes fewer where `memory-bytes` leaves less.
    public var writeValuesMax = 4_000_000
    /// Writes of one client a second; 0: no limit. (Firebase: 1,000 of a whole database, spec §1.)
    public var clientWritesPerSecondMax = 0
    /// Bytes of writes of one client a minute; 0: no limit. (Firebase: 64 MB of a whole database, spec §1.)
    public var clientBytesPerMinuteMax = 0
    /// Places an `update` may name.
    public var updatePathsMax = 10_000
    /// Places that one connection may leave to be written when it ends.
    public var onDisconnectEntriesMax = 1_000
    /// Bytes of them, about.
    public var onDisconnectBytesMax = 1 << 20
    /// The same of all connections of one user, or of one address where nobody is signed in; administrators' are not
    /// counted.
    public var onDisconnectClientBytesMax = 16 << 20
    /// The same of all connections together.
    public var onDisconnectServiceBytesMax = 64 << 20
    /// Rows of one page of an export.
    public var exportRowsMax = 10_000
    /// Exports that may hold a snapshot at one time.
    public var exportSnapshotsMax = 16
    /// Milliseconds after which an unused export ends.
    public var exportIdleMs = 600_000
    /// Rows of one import call, which is one commit: the writer is held some 70 ms for so many. A page of an export
    /// fits.
    public var importRowsMax = 10_000
    /// How long change records are kept.
    public var changeAgeHoursMax = 7 * 24
    /// How many bytes of change records are kept.
    public var changeBytesMax = 10 << 30
    /// Matches of one pattern in one commit that a follower is told one by one.
    public var followMatchesMax = 1_000

    /// Findings that one check of the store names; the others are counted.
    public var verifyFindingsMax = 1_000
    /// Between two rounds of forgetting: change records that are too old or too many, exports nobody came back for.
    public var upkeepSeconds = 60

    public init() {}

    /// A limit as a setting.
    public struct Named: Sendable {
        /// The setting's name, e.g. `listeners-per-connection-max`.
        public var name: String
        /// The property of `MessagesLimits` that the setting sets.
        public var field: any WritableKeyPath<MessagesLimits, Int> & Sendable
        /// What it may be set to.
        public var range = 1...1_000_000_000
        /// What the setting bounds, for `--help`.
        public var help: String
    }

    /// As long as tokens and counters of milliseconds can mean anything: a hundred years.
    static let hours = 1...876_000

    /// All of them, for whoever reads settings.
    public static let all: [Named] = [
        Named(
            name: "unreserved-read-rows-max", field: \.unreservedReadRowsMax,
            help: "rows a read may take before it waits for its turn among the large reads"),
        Named(
            name: "listeners-per-connection-max", field: \.listenersPerConnectionMax,
            help: "listeners of one connection"),
        Named(
            name: "listeners-per-client-max", field: \.listenersPerClientMax,
            help: "listeners of one user (or address, when nobody is signed in)"),
        Named(name: "listeners-max", field: \.listenersMax, help: "listeners of the service"),
        Named(
            name: "listeners-client-bytes-max", field: \.listenersClientBytesMax, range: 1...(1 << 40),
            help: "bytes of the listeners of one user (or address, when nobody is signed in)"),
        Named(
            name: "listeners-service-bytes-max", field: \.listenersServiceBytesMax, range: 1...(1 << 40),
            help: "bytes of all listeners"),
        Named(
            name: "followers-per-connection-max", field: \.followersPerConnectionMax,
            help: "followers of one connection"),
        Named(name: "followers-max", field: \.followersMax, help: "followers of the service"),
        Named(name: "patterns-per-follower-max", field: \.patternsPerFollowerMax, help: "patterns of one follower"),
        Named(
            name: "catch-up-bytes-max", field: \.catchUpBytesMax,
            range: 1...(1 << 30), help: "bytes of one merged notification for a slow listener"),
        Named(
            name: "shared-event-bytes-min", field: \.sharedEventBytesMin, range: 1...(1 << 30),
            help: "bytes from which on an event is kept once for all who are sent it"),
        Named(
            name: "coalesce-ms-max", field: \.coalesceMsMax, range: 1...3_600_000,
            help: "the longest coalesceMs of a listener"),
        Named(
            name: "event-rows-max", field: \.eventRowsMax,
            help: "rows read on the publisher's thread for the events of one place"),
        Named(
            name: "rights-turn-ms", field: \.rightsTurnMs, range: 0...10_000,
            help: "how long rights to read are judged at a time when what they rest on has changed"),
        Named(
            name: "resume-commits-max", field: \.resumeCommitsMax,
            help: "commits searched for what a resuming listener missed"),
        Named(
            name: "resume-bytes-max", field: \.resumeBytesMax, range: 1...(1 << 40),
            help: "bytes of the records of these commits"),
        Named(name: "databases-max", field: \.databasesMax, help: "databases of the service"),
        Named(
            name: "rules-bytes-max", field: \.rulesBytesMax, range: 1...RulesLimits.documentBytesMax,
            help: "bytes of a rules text"),
        Named(name: "rules-steps-max", field: \.rulesStepsMax, help: "steps one rule may take"),
        Named(
            name: "rules-operation-steps-max", field: \.rulesOperationStepsMax,
            help: "steps all rules of one operation may take"),
        Named(
            name: "refusal-trace-max", field: \.refusalTraceMax,
            help: "rules that a refusal tells an administrator who speaks as somebody"),
        Named(name: "indexes-per-database-max", field: \.indexesPerDatabaseMax, help: "indexes of one database"),
        Named(
            name: "index-build-page-rows", field: \.indexBuildPageRows,
            help: "children one commit of an index build handles"),
        Named(
            name: "slow-operation-ms", field: \.slowOperationMs, range: 0...3_600_000,
            help: "operations that take longer are logged, with the reason; 0: none"),
        Named(
            name: "slow-operation-lines-max", field: \.slowOperationLinesMax, range: 1...100_000,
            help: "lines a minute about slow operations"),
        Named(name: "write-values-max", field: \.writeValuesMax, help: "values of one write"),
        Named(
            name: "client-writes-per-second-max", field: \.clientWritesPerSecondMax, range: 0...1_000_000,
            help: "writes of one user (or address, when nobody is signed in) a second; 0: no limit"),
        Named(
            name: "client-bytes-per-minute-max", field: \.clientBytesPerMinuteMax, range: 0...(1 << 40),
            help: "bytes of writes of one user (or address, when nobody is signed in) a minute; 0: no limit"),
        Named(name: "update-paths-max", field: \.updatePathsMax, help: "places one update may name"),
        Named(
            name: "on-disconnect-entries-max", field: \.onDisconnectEntriesMax,
            help: "places one connection may leave to be written when it ends"),
        Named(name: "on-disconnect-bytes-max", field: \.onDisconnectBytesMax, help: "bytes of them"),
        Named(
            name: "on-disconnect-client-bytes-max", field: \.onDisconnectClientBytesMax,
            help: "the same over the connections of one user (or address, when nobody is signed in)"),
        Named(
            name: "on-disconnect-service-bytes-max", field: \.onDisconnectServiceBytesMax,
            help: "the same over all connections"),
        Named(name: "export-rows-max", field: \.exportRowsMax, help: "rows of one page of an export"),
        Named(name: "export-snapshots-max", field: \.exportSnapshotsMax, help: "exports at one time"),
        Named(
            name: "export-idle-ms", field: \.exportIdleMs, range: 1...86_400_000,
            help: "how long an export may rest between two pages"),
        Named(name: "import-rows-max", field: \.importRowsMax, help: "rows of one import call"),
        Named(
            name: "change-age-hours-max", field: \.changeAgeHoursMax, range: hours,
            help: "hours that change records are kept"),
        Named(
            name: "change-bytes-max", field: \.changeBytesMax, range: 1...(1 << 50),
            help: "bytes of change records that are kept"),
        Named(
            name: "follow-matches-max", field: \.followMatchesMax,
            help: "matches of one pattern in one commit that are told one by one"),
        Named(
            name: "verify-findings-max", field: \.verifyFindingsMax, range: 1...100_000,
            help: "findings that one check of the store names"),
        Named(
            name: "upkeep-seconds", field: \.upkeepSeconds, range: 1...3_600,
            help: "seconds between two rounds of forgetting old changes and exports"),
    ]
}
