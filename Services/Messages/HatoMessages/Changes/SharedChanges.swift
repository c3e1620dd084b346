import HatoModel
import HatoRPC
import HatoStorage

/// What a group of commits tells followers: found and written once for all who ask for the same patterns of the same
/// database, so that twenty of them cost little more than one.
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

    /// Different questions that were answered.
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
