import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// What brings a listener from where it is to the version of a snapshot; read on a reader's thread.
struct ListenerReading: Sendable {
    enum Wanted: Sendable {
        case whole
        /// The whole value, unless it still has this etag.
        case unlessEtag(String)
        /// What came after a version.
        case since(UInt64)
        /// What is now at the places it has missed.
        case missed(MissedChanges)
    }

    struct Outcome: Sendable {
        /// Nil: nothing to tell.
        var members: EncodedJSON?
        /// The window of a query, when it was asked for.
        var window: QueryWindow?
    }

    let store: any Store
    let limits: MessagesLimits
    /// Whose listener it is; another topic may have the same key by the time this is read.
    let topic: UInt64
    let key: TopicKey
    /// As of the snapshot.
    let database: Database
    let snapshot: any StoreSnapshot
    let wanted: Wanted
    /// Whether the window of the query must be read too.
    let readsWindow: Bool

    var version: UInt64 { snapshot.version }

    /// More commits than this are not searched for what a listener missed: the whole value is cheaper.
    private static let commitsMax = 50_000

    func read() throws -> Outcome {
        let reading = NodeReading(database, in: snapshot, bytesMax: limits.responseBytesMax)
        var window: QueryWindow?
        if readsWindow, let query = key.query {
            let plan = QueryPlan(query, at: key.path, in: database.indexes)
            window = try QueryWindow(query, at: key.path, by: plan, reading: reading.runner)
        }
        return Outcome(members: try members(reading), window: window)
    }

    private func members(_ reading: NodeReading) throws -> EncodedJSON? {
        switch wanted {
        case .whole: return try EventMembers.whole(key, reading)
        case .unlessEtag(let etag):
            if key.query == nil, (try? reading.etag(of: key.path)) == etag { return nil }
            return try EventMembers.whole(key, reading)
        case .since(let version):
            return try members(reading, after: changes(since: version))
        case .missed(let missed):
            return try members(reading, after: missed)
        }
    }

    private func members(_ reading: NodeReading, after missed: MissedChanges) throws -> EncodedJSON? {
        if missed.isEmpty { return nil }
        if key.query != nil || missed.isWhole { return try EventMembers.whole(key, reading) }
        let update: ListenerUpdate
        do { update = try missed.update(reading: reading.nodes, bytesMax: limits.catchUpBytesMax) } catch TreeError
            .tooBig
        {
            return try EventMembers.whole(key, reading)
        }
        switch update {
        case .nothing: return nil
        case .fresh: return try EventMembers.whole(key, reading)
        case .events(let events): return EventMembers.encode(version: version, events)
        }
    }

    /// The places that commits after `since` wrote, up to the snapshot; the whole node when that is not known any more.
    private func changes(since: UInt64) throws -> MissedChanges {
        var missed = MissedChanges(of: key.path)
        var position = since
        guard since <= version, version - since <= Self.commitsMax else {
            missed.addWhole()
            return missed
        }
        while position < version {
            let commits: [Commit]
            do { commits = try store.commits(after: position, limit: 512) } catch {
                switch error {
                case .compacted, .unknownVersion:
                    missed.addWhole()
                    return missed
                default: throw error
                }
            }
            guard let last = commits.last else { break }
            for commit in commits where commit.version <= version {
                guard let note = try CommitNote.of(commit), note.database == key.database else { continue }
                missed.add(note.changes)
            }
            if missed.isWhole { return missed }
            position = last.version
        }
        return missed
    }
}
