// The errors that the methods of messages may return besides those of every method.

extension [MethodError] {
    fileprivate static let database = [
        MethodError(.notFound, "database_not_found"), MethodError(.invalidArgument, "invalid_database"),
    ]

    /// Of methods with a path.
    fileprivate static let node =
        database + [MethodError(.invalidArgument, "invalid_path", "invalid_key", "too_deep")]

    fileprivate static let query = [MethodError(.invalidArgument, "invalid_query", "unknown_query_parameter")]

    fileprivate static let value = [
        MethodError(
            .invalidArgument, "invalid_value", "invalid_priority", "invalid_server_value", "string_too_long")
    ]
    fileprivate static let tooManyValues = [MethodError(.invalidArgument, "too_many_values")]
    fileprivate static let pathsOfUpdate = [MethodError(.invalidArgument, "too_many_paths", "conflicting_paths")]

    /// Of methods that the rules authorise.
    fileprivate static let denied = [MethodError(.permissionDenied, "permission_denied", data: ["path"])]
    private static let quotas = [
        MethodError(.resourceExhausted, "too_many_writes", "too_many_bytes", data: ["retryAfterMs"])
    ]
    fileprivate static let etag = [
        MethodError(.failedPrecondition, "etag_mismatch", data: ["etag", "value"]),
        MethodError(.invalidArgument, "invalid_etag"),
    ]

    fileprivate static let removal = denied + node + quotas + [MethodError(.unavailable, "contended")]
    fileprivate static let write = removal + value + tooManyValues

    private static let onDisconnectLimits = [
        MethodError(.resourceExhausted, "too_many_on_disconnect", "on_disconnect_too_big"),
        MethodError(.resourceExhausted, "on_disconnect_full", data: ["retryAfterMs"]),
    ]
    fileprivate static let onDisconnectRemoval = denied + node + quotas + onDisconnectLimits
    fileprivate static let onDisconnectWrite = onDisconnectRemoval + value + tooManyValues
    fileprivate static let onDisconnectCancel = node + onDisconnectLimits

    fileprivate static let subscription = [
        MethodError(.notFound, "subscription_not_found"), MethodError(.invalidArgument, "invalid_database"),
    ]
    fileprivate static let wrongRules = [
        MethodError(.invalidArgument, "invalid_rules", data: ["problems"]),
        MethodError(.invalidArgument, "too_long", "too_many_indexes"),
    ]
}

extension Messages.Get {
    public static let errors: [MethodError] = .joined(
        .denied, .node, .query,
        [
            MethodError(.invalidArgument, "shallow_alone", "etag_of_query"),
            MethodError(.failedPrecondition, "index_not_defined", "index_building", data: ["path", "indexOn"]),
        ])
}
extension Messages.Set {
    public static let errors: [MethodError] = .joined(
        .write, .etag,
        [
            MethodError(.failedPrecondition, "version_mismatch"),
            MethodError(.failedPrecondition, "unknown_version", data: ["newest"]),
            MethodError(.invalidArgument, "two_conditions"),
        ])
}
extension Messages.Update { public static let errors: [MethodError] = .joined(.write, .pathsOfUpdate) }
extension Messages.Push {
    public static let errors: [MethodError] = .joined(.write, [MethodError(.alreadyExists, "key_exists")])
}
extension Messages.Remove { public static let errors: [MethodError] = .joined(.removal, .etag) }
extension Messages.Listen {
    public static let errors: [MethodError] = .joined(
        .denied, .node, .query,
        [
            MethodError(.invalidArgument, "invalid_time", "invalid_etag", "invalid_epoch"),
            MethodError(.resourceExhausted, "too_many_listeners"),
        ])
}
extension Messages.Unlisten { public static let errors: [MethodError] = .subscription }
extension Messages.OnDisconnect.Set { public static let errors: [MethodError] = .onDisconnectWrite }
extension Messages.OnDisconnect.Update {
    public static let errors: [MethodError] = .joined(.onDisconnectWrite, .pathsOfUpdate)
}
extension Messages.OnDisconnect.Remove { public static let errors: [MethodError] = .onDisconnectRemoval }
extension Messages.OnDisconnect.Cancel { public static let errors: [MethodError] = .onDisconnectCancel }
extension Messages.Follow {
    public static let errors: [MethodError] = .joined(
        .database,
        [
            MethodError(.failedPrecondition, "compacted", data: ["oldest"]),
            MethodError(.failedPrecondition, "unknown_version", data: ["newest"]),
            MethodError(.resourceExhausted, "too_many_followers"),
            MethodError(.invalidArgument, "invalid_epoch", "invalid_pattern", "too_many_patterns"),
        ])
}
extension Messages.Unfollow { public static let errors: [MethodError] = .subscription }
extension Messages.Rules.Get { public static let errors: [MethodError] = .database }
extension Messages.Rules.Set { public static let errors: [MethodError] = .joined(.database, .wrongRules) }
extension Messages.Rules.Check {
    public static let errors: [MethodError] = .joined(
        .node, .query, .value, [MethodError(.invalidArgument, "not_of_operation", "conflicting_paths")])
}
extension Messages.Indexes.List { public static let errors: [MethodError] = .database }
extension Messages.Databases.Create {
    public static let errors: [MethodError] = .joined(
        [
            MethodError(.alreadyExists, "database_exists"), MethodError(.resourceExhausted, "too_many_databases"),
            MethodError(.invalidArgument, "invalid_database"),
        ], .wrongRules)
}
extension Messages.Databases.Drop { public static let errors: [MethodError] = .database }
extension Messages.Stats { public static let errors: [MethodError] = .database }
extension Messages.Export {
    public static let errors: [MethodError] = .joined(
        .node,
        [
            MethodError(.notFound, "export_not_found"),
            MethodError(.invalidArgument, "invalid_snapshot", "invalid_limit"),
            MethodError(.resourceExhausted, "too_many_exports", data: ["retryAfterMs"]),
        ])
}
extension Messages.Import {
    public static let errors: [MethodError] = .joined(
        .node, .value, .tooManyValues,
        [
            MethodError(.invalidArgument, "invalid_row", "too_many_rows", "conflicting_paths")
        ])
}
extension Messages.Backup { public static let errors: [MethodError] = .joined(.database, .backup) }
extension Messages.Verify {
    public static let errors: [MethodError] = .joined(.database, [MethodError(.unavailable, "verify_running")])
}
