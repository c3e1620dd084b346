/// Decides which sessions end so that one more fork of a sign-in fits: those that have expired, then the forks of the
/// same sign-in, the least recently used first. Never another device: a widget that forks at each start would sign its
/// owner out elsewhere.
struct ForkPolicy: Sendable {
    /// Sessions of one account.
    var sessionsMax: Int
    /// Forks of one sign-in.
    var forksMax: Int
    var refresh: RefreshPolicy

    /// The ids of the sessions that end; nil when none fits, as nothing that may end is left.
    ///
    /// - Parameters:
    ///   - held: the session that is forked, which stays.
    ///   - sessions: all sessions of the account.
    ///   - now: milliseconds since 1970.
    func ended(forking held: SessionRecord, among sessions: [SessionRecord], now: Int64) -> [[UInt8]]? {
        let expired = sessions.filter { $0.id != held.id && $0.rotation.isExpired(now: now, policy: refresh) }
        let over = Set(expired.map(\.id))
        let living = sessions.filter { !over.contains($0.id) }
        let forks = living.filter { $0.family == held.family && $0.forkedFrom != nil && $0.id != held.id }
            .sorted { $0.rotation.rotatedAt < $1.rotation.rotatedAt }
        let surplus = max(0, living.count - sessionsMax + 1, forks.count - forksMax + 1)
        guard surplus <= forks.count else { return nil }
        return expired.map(\.id) + forks.prefix(surplus).map(\.id)
    }
}
