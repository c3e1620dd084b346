/// Divides the files that a process may have open between its store and its connections: a value.
///
/// A flood of connections must not take the files that the store needs, so connections get what the reserve leaves.
public struct OpenFilesPlan: Sendable, Hashable {
    /// What the store, logs and listeners open, and connections that are being closed or refused; a setting.
    public static let reserveDefault = 4_608

    /// The limit of the process (`RLIMIT_NOFILE`), raised.
    public let limit: Int
    /// What connections leave free: what was asked for, at most half of the limit.
    public let reserve: Int
    /// What the connections of one server are capped to.
    public let connectionsMax: Int

    /// `servers` in this process share what the reserve leaves.
    public init(limit: Int, reserve: Int, servers: Int = 1) {
        self.limit = max(1, limit)
        self.reserve = min(max(0, reserve), self.limit / 2)
        connectionsMax = max(1, (self.limit - self.reserve) / max(1, servers))
    }
}
