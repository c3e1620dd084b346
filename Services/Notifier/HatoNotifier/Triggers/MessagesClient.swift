import HatoModel
import HatoRPC

/// A position in the feed of a database.
struct FeedPosition: Sendable, Hashable {
    var version: UInt64
    /// Empty while it is not known.
    var epoch: String
}

/// What the notifier asks of messages, with its service key.
///
/// Reads have a connection of their own, and so has each feed: one that waits for its handler stops being read, and the
/// handler waits for reads.
struct MessagesClient: Sendable {
    private let configuration: RPCClientConfiguration
    let reads: RPCClient

    init(_ configuration: RPCClientConfiguration) {
        self.configuration = configuration
        reads = RPCClient(configuration)
    }

    /// A connection for a feed, which keeps few bytes of what comes: they are not in the budget of triggers yet.
    func feed() -> RPCClient {
        var configuration = configuration
        configuration.subscriptionBufferBytesMax = min(configuration.subscriptionBufferBytesMax, 64 << 10)
        return RPCClient(configuration)
    }

    /// Where the history of a database is now.
    func position(of database: DatabaseName, _ pattern: FeedPattern) async throws -> FeedPosition {
        let subscription: RPCSubscription
        do {
            subscription = try await reads.subscribe(Messages.Follow(database: database, patterns: [pattern]))
        } catch let error as RPCError where error.code == .unauthenticated || error.code == .permissionDenied {
            // It is not the caller's credential that was refused.
            throw RPCError.unavailable(
                reason: "messages_refuses_notifier",
                "Messages refuses the notifier's key: list it in the service-keys-file of messages, with the methods "
                    + "\(NotifierServer.methodsOfMessages.sorted().joined(separator: ", "))")
        }
        subscription.cancel()
        let result = try Messages.Follow.decodeResult(.object(subscription.result))
        return FeedPosition(version: result.version, epoch: result.epoch)
    }

    func close() async { await reads.close() }
}

extension FeedCommit {
    /// What a notification of the feed says. Throws `FeedEnded` when it is the feed's last word.
    init(_ event: RPCEvent) throws {
        if event.method == Messages.Cancelled.method {
            throw FeedEnded(reason: (try? Messages.Cancelled.decode(event.params))?.reason ?? "")
        }
        let change = try Messages.Change.decode(event.params)
        self.init(
            version: change.version, epoch: change.epoch, time: change.time,
            changes: change.changes.map(FeedChange.init))
    }
}

/// Messages ended the feed, and said why: `compacted`, `database_dropped` …
struct FeedEnded: Error, Sendable {
    var reason: String
}

extension FeedChange {
    init(_ entry: Messages.Change.Entry) {
        pattern = entry.pattern ?? ""
        parameters = entry.params ?? [:]
        path = entry.path
        type =
            switch entry.type {
            case .created: .created
            case .updated: .updated
            case .deleted: .deleted
            }
        before = entry.before
        after = entry.after
        uid = entry.uid
        isPartial = entry.partial ?? false
        isTruncated = entry.truncated ?? false
        isMany = entry.many ?? false
    }
}
