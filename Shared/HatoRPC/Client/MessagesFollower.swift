public import HatoModel

/// The changes of a database that match a follower's patterns, in the order of commits. A change without `changes` has
/// only the position of the follower.
///
/// The sequence throws `RPCError` when what was missed is no longer kept (`compacted`) or the service has another
/// history (`unknown_version`): a reader that keeps a position of its own then decides how to go on.
public typealias MessagesFollower = ResumingEvents<Messages.Follow>

extension Messages.Follow: ResumableRequest {
    /// One commit.
    public typealias Event = Messages.Change

    public static func start(of result: Result) -> SubscriptionStart {
        SubscriptionStart(version: result.version, epoch: result.epoch)
    }

    public mutating func resume(from start: SubscriptionStart) {
        // Without a position it began at the end: there it goes on. (0 still is the oldest that is kept.)
        if after == nil { after = start.version }
        epoch = start.epoch
    }

    public mutating func resume(after change: Messages.Change, of start: SubscriptionStart) {
        after = change.version
        epoch = change.epoch
    }
}

extension RPCClient {
    /// Follows the changes of a database, and goes on after a lost connection. `credential` is for this follower only,
    /// instead of the identity of the connection, which every new connection shows again.
    public func follow(_ request: Messages.Follow, credential: String? = nil) -> MessagesFollower {
        MessagesFollower(request) { try await self.subscribe($0, credential: credential) }
    }
}
