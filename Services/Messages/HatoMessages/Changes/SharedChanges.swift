import HatoModel
import HatoRPC
import HatoStorage

/// The changes that followers get for a group of commits: found and encoded once for all followers with the same
/// patterns of the same database, so that twenty of them cost little more than one.
struct SharedChanges {
    private struct Feed: Hashable {
        var database: DatabaseID
        var matcher: FeedMatcher
    }

    private let notes: [CommitNote]
    private let epoch: StoreEpoch
    private var itemsByFeed: [Feed: [FeedPage.Item]] = [:]

    init(_ notes: [CommitNote], _ epoch: StoreEpoch) {
        self.notes = notes
        self.epoch = epoch
    }

    init(of group: CommitGroup, _ epoch: StoreEpoch) {
        self.init(group.commits.compactMap { $0.note as? CommitNote }, epoch)
    }

    /// The number of different sets of patterns.
    var feedCount: Int { itemsByFeed.count }

    /// What matches, in the order of commits.
    mutating func items(_ matcher: FeedMatcher, of database: DatabaseID) -> [FeedPage.Item] {
        if notes.isEmpty { return [] }
        let feed = Feed(database: database, matcher: matcher)
        if let items = itemsByFeed[feed] { return items }
        let items = notes.compactMap { note in
            Follower.members(of: note, matcher, database, epoch).map {
                FeedPage.Item(version: note.version, members: $0)
            }
        }
        itemsByFeed[feed] = items
        return items
    }
}
