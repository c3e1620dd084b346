import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// One subscription to the feed of a database. Lives on the publisher's thread.
///
/// A follower is a position: everything up to it has been sent, or does not match. A live follower is at the newest
/// group and gets each group when it is published; the others read the kept records, a page at a time, whenever their
/// sockets have space.
final class Follower {
    enum State {
        case live
        /// A page is being read on a reader's thread.
        case loading
        /// Its socket is full.
        case waiting
    }

    struct Opening: Sendable {
        var connection: any ListenerPeer
        var subscription: String
        var database: Database
        var patterns: [FeedPattern]?
        /// Takes the watch of its identity back.
        var endWatch: @Sendable () -> Void
    }

    let id: UInt64
    let opening: Opening
    let matcher: FeedMatcher
    var position: UInt64
    var state = State.live
    /// The version of the last notification.
    var sentVersion: UInt64

    var connection: any ListenerPeer { opening.connection }
    var subscription: String { opening.subscription }
    var database: Database { opening.database }

    /// A follower without matches gets an empty change after so many versions, and every minute, so that the
    /// position it keeps does not grow old.
    static let silentVersionsMax: UInt64 = 1_000

    init(id: UInt64, _ opening: Opening, position: UInt64, limits: MessagesLimits) {
        self.id = id
        self.opening = opening
        self.position = position
        sentVersion = position
        matcher = FeedMatcher(
            patterns: opening.patterns, matchesMax: limits.followMatchesMax, sharedBytesMin: limits.sharedEventBytesMin)
    }

    /// The members of `messages.change` for a commit; nil when nothing matches.
    static func members(
        of note: CommitNote, _ matcher: FeedMatcher, _ database: DatabaseID, _ epoch: StoreEpoch
    ) -> EncodedJSON? {
        guard note.database == database else { return nil }
        let entries = matcher.entries(of: note)
        guard !entries.isEmpty else { return nil }
        let visible = note.disablesTriggers ? nil : entries
        return members(version: note.version, epoch, time: note.time, visible).shared(from: matcher.sharedBytesMin)
    }

    /// - Parameter entries: nil for a commit with `disableTriggers`.
    static func members(
        version: UInt64, _ epoch: StoreEpoch, time: Int64, _ entries: [Messages.Change.Entry]?
    ) -> EncodedJSON {
        var writer = JSONWriter(capacity: 512)
        writer.member("version")
        writer.write(version)
        writer.member("epoch")
        writer.write(epoch.description)
        writer.member("time")
        writer.write(time)
        writer.member("changes")
        writer.beginArray()
        for entry in entries ?? [] { entry.write(into: &writer) }
        writer.endArray()
        if entries == nil {
            writer.member("disableTriggers")
            writer.write(true)
        }
        return EncodedJSON(writer)
    }
}

/// A page of the feed for one follower.
struct FeedPage: Sendable {
    struct Item: Sendable {
        var version: UInt64
        var members: EncodedJSON
    }

    /// What matches, oldest first.
    var items: [Item] = []
    /// Everything up to here has been looked at.
    var end: UInt64
    var time: Int64 = 0

    private static let commitsMax = 512
    private static let bytesMax = 1 << 20

    /// Reads the commits after `position`; throws `StoreError` when they are no longer kept.
    static func read(
        after position: UInt64, _ store: any Store, _ matcher: FeedMatcher, _ database: DatabaseID
    ) throws -> FeedPage {
        var page = FeedPage(end: position)
        var bytes = 0
        let newest = store.version
        let commits = try store.commits(after: position, limit: commitsMax)
        // Commits without a record may be passed over.
        if commits.isEmpty { page.end = max(position, newest) }
        for commit in commits {
            if let note = try CommitNote.of(commit) {
                page.time = note.time
                if let members = Follower.members(of: note, matcher, database, store.epoch) {
                    page.items.append(Item(version: commit.version, members: members))
                    bytes += members.count
                }
            }
            page.end = commit.version
            if bytes > bytesMax { break }
        }
        return page
    }
}
