import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree

/// What this service says no with; the table of its errors on the wire (protocol §3).
enum MessagesError: Error, Sendable {
    case databaseNotFound(DatabaseName)
    case databaseExists(DatabaseName)
    case tooManyDatabases(max: Int)
    case wrongRules(RulesProblems)
    case rulesTooLong(max: Int)
    case tooManyIndexes(max: Int)
    /// `trace`: for an administrator who acts as a user.
    case denied(TreePath, trace: RulesTrace? = nil)
    /// An index that the rules declare is still being built.
    case indexBuilding(on: String, path: TreePath)
    case tooManyListeners(max: Int, of: ListenerScope)
    case listenersTooBig(bytesMax: Int, of: ListenerScope)
    case tooManyFollowers(max: Int)
    case tooManyPatterns(max: Int)
    case subscriptionNotFound(String)
    /// `parameter` nil: who asked for the version knows.
    case unknownVersion(newest: UInt64, parameter: String? = nil)
    case compacted(oldest: UInt64)
    case tooManyOnDisconnect(max: Int)
    case onDisconnectTooBig(bytesMax: Int)
    case onDisconnectFull(ofClient: Bool)
    case tooManyExports(max: Int)
    case exportNotFound(String)
    /// A handle is of another export, of this place.
    case otherExport(database: DatabaseName, TreePath)
    case wrongRow(index: Int, String)
    case verifying
    case tooManyValues(parameter: String, max: Int)
    /// A client writes more than it may.
    case writesTooFast(WriteRate, retryAfterMs: Int)
    /// Each time the write was planned, other writes changed what the plan rested on before its turn.
    case contended
    case stopping
    /// The store failed while the write was on its way.
    case outcomeUnknown(isIdempotent: Bool)
}

/// The rules that were asked before one refused an operation.
struct RulesTrace: Sendable {
    /// The last of them.
    var steps: [Messages.Rules.Check.Step]
    /// How many were asked before these.
    var leftOut: Int
}

extension MessagesError {
    static func tooManyValues(of mutation: Mutation, max: Int) -> MessagesError {
        let isUpdate = if case .update = mutation.operation { true } else { false }
        return .tooManyValues(parameter: isUpdate ? "values" : "value", max: max)
    }
}

extension MessagesError: RPCErrorConvertible {
    var rpcError: RPCError {
        switch self {
        case .databaseNotFound, .databaseExists, .tooManyDatabases, .wrongRules, .rulesTooLong, .tooManyIndexes:
            databaseError
        case .denied(let path, let trace): Self.denial(path, trace)
        case .indexBuilding(let on, let path):
            RPCError(
                .failedPrecondition, reason: "index_building",
                "The index on \"\(on)\" for path \"\(path)\" is still being built; see messages.indexes.list",
                retryable: true, data: ["path": .string(path.text), "indexOn": .string(on)])
        case .tooManyListeners, .listenersTooBig, .tooManyFollowers, .tooManyPatterns, .subscriptionNotFound,
            .unknownVersion, .compacted:
            listeningError
        case .tooManyOnDisconnect, .onDisconnectTooBig, .onDisconnectFull: disconnectError
        case .tooManyExports, .exportNotFound, .otherExport, .wrongRow, .verifying, .stopping: movingError
        case .tooManyValues(let parameter, let max):
            .invalidArgument(
                parameter, reason: "too_many_values",
                "A write has at most \(max) values; send the others in further writes")
        case .contended:
            .unavailable(
                reason: "contended",
                "Other writes to the same nodes came first each time this one was ready; nothing of it was written")
        case .writesTooFast(let rate, let retryAfterMs): rate.error(retryAfterMs: retryAfterMs)
        case .outcomeUnknown(let isIdempotent): .outcomeUnknown(isIdempotent: isIdempotent)
        }
    }

    private static func denial(_ path: TreePath, _ trace: RulesTrace?) -> RPCError {
        var error = RPCError.permissionDenied(path: path.text)
        guard let trace else { return error }
        error.data["trace"] = trace.steps.json
        if trace.leftOut > 0 { error.data["traceLeftOut"] = .number(Double(trace.leftOut)) }
        return error
    }

    private var databaseError: RPCError {
        switch self {
        case .databaseNotFound(let name):
            RPCError(
                .notFound, reason: "database_not_found",
                "There is no database \"\(name)\"; messages.databases.create makes one", data: ["parameter": "database"]
            )
        case .databaseExists(let name):
            RPCError(
                .alreadyExists, reason: "database_exists", "The database \"\(name)\" exists",
                data: ["parameter": "database"])
        case .tooManyDatabases(let max):
            .resourceExhausted(reason: "too_many_databases", "There are \(max) databases, which is the limit")
        case .wrongRules(let problems):
            RPCError(
                .invalidArgument, reason: "invalid_rules", "\(problems)e.g. {\"rules\": {\".read\": \"auth != null\"}}",
                data: [
                    "parameter": "rules",
                    "problems": .array(
                        problems.problems.map {
                            [
                                "line": .number(Double($0.line)), "column": .number(Double($0.column)),
                                "message": .string($0.message),
                            ]
                        }),
                ])
        case .rulesTooLong(let max):
            .invalidArgument("rules", reason: "too_long", "Rules have at most \(max) bytes")
        case .tooManyIndexes(let max):
            .invalidArgument("rules", reason: "too_many_indexes", "Rules declare at most \(max) indexes")
        default: .internalError
        }
    }

    private var listeningError: RPCError {
        switch self {
        case .tooManyListeners(let max, let scope):
            .resourceExhausted(
                reason: "too_many_listeners", "\(scope.rawValue) has \(max) listeners, which is the limit")
        case .listenersTooBig(let bytesMax, .service):
            .resourceExhausted(
                reason: "too_many_listeners",
                "All listeners of the service together take the \(bytesMax) bytes that they may "
                    + "(listeners-service-bytes-max), or nearly: try again later, or listen to shorter paths",
                retryAfterMs: 5_000)
        case .listenersTooBig(let bytesMax, let scope):
            .resourceExhausted(
                reason: "too_many_listeners",
                "\(scope.rawValue) would have listeners of more than \(bytesMax) bytes, which is the limit; end some, "
                    + "or listen to shorter paths")
        case .tooManyFollowers(let max):
            .resourceExhausted(reason: "too_many_followers", "There are \(max) followers, which is the limit")
        case .tooManyPatterns(let max):
            .invalidArgument("patterns", reason: "too_many_patterns", "A follower has at most \(max) patterns")
        case .subscriptionNotFound(let name):
            RPCError(
                .notFound, reason: "subscription_not_found",
                "This connection has no subscription \"\(name)\"; pass the `subscription` of a messages.listen or "
                    + "messages.follow of this connection",
                data: ["parameter": "subscription"])
        case .unknownVersion(let newest, let parameter): Self.unknownVersion(newest, parameter)
        case .compacted(let oldest):
            .failedPrecondition(
                reason: "compacted", "Changes before version \(oldest) are no longer kept",
                data: ["oldest": .number(Double(oldest))])
        default: .internalError
        }
    }

    private static func unknownVersion(_ newest: UInt64, _ parameter: String?) -> RPCError {
        var data: JSONObject = ["newest": .number(Double(newest))]
        data["parameter"] = parameter.map { .string($0) }
        return .failedPrecondition(
            reason: "unknown_version", "This store never had that version in that epoch; its newest is \(newest)",
            data: data)
    }

    private var disconnectError: RPCError {
        switch self {
        case .tooManyOnDisconnect(let max):
            .resourceExhausted(
                reason: "too_many_on_disconnect",
                "A connection may have onDisconnect writes at \(max) paths at most; cancel some with "
                    + "messages.onDisconnect.cancel")
        case .onDisconnectTooBig(let bytesMax):
            .resourceExhausted(
                reason: "on_disconnect_too_big",
                "The onDisconnect writes of a connection may take \(bytesMax) bytes at most; cancel some with "
                    + "messages.onDisconnect.cancel")
        case .onDisconnectFull(let isOfClient):
            .resourceExhausted(
                reason: "on_disconnect_full",
                isOfClient
                    ? "The onDisconnect writes of this user (without a signed-in user: of this address) have reached "
                        + "their limit; cancel some with messages.onDisconnect.cancel, or try again later"
                    : "The onDisconnect writes of all connections have reached their limit; try again later",
                retryAfterMs: 10_000)
        default: .internalError
        }
    }

    private var movingError: RPCError {
        switch self {
        case .tooManyExports(let max):
            .resourceExhausted(
                reason: "too_many_exports", "\(max) exports are under way, which is the limit",
                retryAfterMs: Int(ExportSnapshots.restMs))
        case .exportNotFound(let handle):
            RPCError(
                .notFound, reason: "export_not_found",
                "The export \"\(handle)\" has ended; begin anew without snapshot",
                data: ["parameter": "snapshot"])
        case .otherExport(let database, let path):
            .invalidArgument(
                "snapshot", reason: "invalid_snapshot",
                "This snapshot is of the export of \"\(path)\" of the database \"\(database)\"; "
                    + "the first page of another export has none")
        case .wrongRow(let index, let problem):
            .invalidArgument("rows", reason: "invalid_row", "Row \(index) \(problem), e.g. [\"/title\", \"磯野家\"]")
        case .verifying:
            .unavailable(reason: "verify_running", "A check of the store is under way; there is one at a time")
        case .stopping: .unavailable(reason: "stopping", "The service is stopping")
        default: .internalError
        }
    }
}

/// What one client may write.
enum WriteRate: Sendable, Hashable {
    case writes(perSecond: Int)
    case bytes(perMinute: Int)

    fileprivate func error(retryAfterMs: Int) -> RPCError {
        switch self {
        case .writes(let perSecond):
            .resourceExhausted(
                reason: "too_many_writes", "One client may write \(perSecond) times a second",
                retryAfterMs: retryAfterMs)
        case .bytes(let perMinute):
            .resourceExhausted(
                reason: "too_many_bytes", "One client may write \(perMinute) bytes a minute", retryAfterMs: retryAfterMs
            )
        }
    }
}

extension StoreError {
    /// A store that has closed is an outage; what else a store says is for the log, and nil here.
    var asRPCError: RPCError? {
        switch self {
        case .closed: .storeClosed
        case .outcomeUnknown: .outcomeUnknown(isIdempotent: false)
        case .compacted(let oldest): MessagesError.compacted(oldest: oldest).rpcError
        case .unknownVersion(let newest): MessagesError.unknownVersion(newest: newest).rpcError
        default: nil
        }
    }
}

extension Write {
    /// What a failure of the store means for this write.
    func naming(_ error: any Error) -> any Error {
        guard case StoreError.outcomeUnknown = error else { return error }
        return MessagesError.outcomeUnknown(isIdempotent: mutation.isIdempotent)
    }
}

extension RPCReply {
    /// `refuse` for a write.
    func refuse(_ error: any Error, isIdempotent: Bool) {
        guard case StoreError.outcomeUnknown = error else { return refuse(error) }
        refuse(MessagesError.outcomeUnknown(isIdempotent: isIdempotent))
    }

    /// `fail`, with the errors of the store and its records turned into those of the wire.
    func refuse(_ error: any Error) {
        switch error {
        case let error as StoreError: if let known = error.asRPCError { fail(known) } else { fail(error) }
        case TreeError.corrupted(let what): fail(StoreError.corrupted(what))
        default: fail(error)
        }
    }
}

/// What has as many listeners as it may.
enum ListenerScope: String {
    case connection = "This connection"
    case client = "This user (without a signed-in user: this address)"
    case service = "The service"
}
