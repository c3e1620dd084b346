extension [MethodError] {
    /// The errors of every `backup` method.
    static let backup = [
        MethodError(.failedPrecondition, "backups_off", "store_damaged"),
        MethodError(.alreadyExists, "backup_exists"),
        MethodError(.unavailable, "backup_running", "backup_failed"),
        MethodError(.invalidArgument, "invalid_name"),
    ]
}
