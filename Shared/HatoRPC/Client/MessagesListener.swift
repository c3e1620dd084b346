public import HatoModel

/// The events of a listener of messages.
///
/// What was missed while the connection was lost comes merged into one event, or as the whole value where the service
/// no longer keeps the changes or has another history. A listener also ends when the token it showed has ended.
public typealias MessagesListener = ResumingEvents<Messages.Listen>

extension Messages.Listen: ResumableRequest {
    /// What changed in one commit or several.
    public typealias Event = Messages.Event

    public static func start(of result: Result) -> SubscriptionStart {
        SubscriptionStart(version: result.version, epoch: result.epoch, missedNothing: result.unchanged == true)
    }

    public mutating func resume(from start: SubscriptionStart) {
        // No event came at such a start, and a position that never moves grows too old to resume from.
        guard start.missedNothing, (since ?? 0) < start.version else { return }
        since = start.version
        epoch = start.epoch
    }

    public mutating func resume(after event: Messages.Event, of start: SubscriptionStart) {
        since = event.version
        epoch = start.epoch
        // It is that of an older value.
        etag = nil
    }
}

extension RPCClient {
    /// Listens, and goes on after a lost connection: events as they come, or `snapshots` of the value with what
    /// happened to its children. `credential` is for this listener only, instead of the identity of the connection,
    /// which every new connection shows again.
    public func listen(_ request: Messages.Listen, credential: String? = nil) -> MessagesListener {
        MessagesListener(request) { try await self.subscribe($0, credential: credential) }
    }
}
