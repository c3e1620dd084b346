/// Divides the files that a process may have open between its store and its connections. A value.
///
/// A flood of connections must not use up the files that the store needs, so connections get the limit minus the
/// reserve.
public struct OpenFilesPlan: Sendable, Hashable {
    /// The default of the reserve, a setting: files of the store, logs and listeners, and connections that are being
    /// closed or refused.
    public static let reserveDefault = 4_608

    /// The limit of the process (`RLIMIT_NOFILE`), raised.
    public let limit: Int
    /// The files that connections leave free: the requested number, at most half of the limit.
    public let reserve: Int
    /// The maximum of connections of one server.
    public let connectionsMax: Int

    /// - Parameter servers: servers of this process, which share the files that the reserve leaves.
    public init(limit: Int, reserve: Int, servers: Int = 1) {
        self.limit = max(1, limit)
        self.reserve = min(max(0, reserve), self.limit / 2)
        connectionsMax = max(1, (self.limit - self.reserve) / max(1, servers))
    }
}
