import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// What brings listeners of a topic from where they are to the version of a snapshot; read on a reader's thread.
struct ListenerReading: Sendable {
    enum Wanted: Sendable, Hashable {
        case whole
        /// The whole value, unless it still has this etag.
        case unlessEtag(String)
        /// What is now at the paths that were changed at a version or later.
        case changedFrom(UInt64)
    }

    let limits: MessagesLimits
    let key: TopicKey
    /// As of the snapshot.
    let database: Database
    private(set) var snapshot: any StoreSnapshot
    let waiters: TopicReading.Waiters
    let wanted: Wanted
    /// For `changedFrom`.
    let missed: MissedPaths
    /// Of a query, as of the snapshot, if it is known.
    let window: QueryWindow?
    /// The bytes that it may take; more is `TreeError.tooBig`.
    var bytesMax: Int

    /// From now on `members` throws `TreeError.tooBig` when it takes more bytes or rows.
    mutating func limit(to bytesMax: Int, rowsMax: Int) {
        self.bytesMax = bytesMax
        snapshot = ShortReadSnapshot(snapshot, rowsMax: rowsMax, bytesMax: bytesMax)
    }

    /// Nil: nothing to send.
    func members() throws -> EncodedJSON? {
        guard !waiters.isClosed else { throw ConnectionClosed() }
        var reading = NodeReading(database, in: snapshot, bytesMax: min(bytesMax, limits.responseBytesMax))
        reading.hashedBytesMax = min(bytesMax, reading.hashedBytesMax)
        switch wanted {
        case .whole: return try EventMembers.whole(key, reading, window)
        case .unlessEtag(let etag):
            if key.query == nil, (try? reading.etag(of: key.path)) == etag { return nil }
            return try EventMembers.whole(key, reading, window)
        case .changedFrom: return try changedMembers(reading)
        }
    }

    private func changedMembers(_ reading: NodeReading) throws -> EncodedJSON? {
        if missed.isEmpty { return nil }
        if key.query != nil || missed.isWhole { return try EventMembers.whole(key, reading, window) }
        let update: ListenerUpdate
        do {
            update = try missed.update(reading: reading.nodes, bytesMax: min(bytesMax, limits.catchUpBytesMax))
        } catch TreeError
            .tooBig
        {
            return try EventMembers.whole(key, reading)
        }
        switch update {
        case .nothing: return nil
        case .fresh: return try EventMembers.whole(key, reading)
        case .events(let events): return EventMembers.encode(version: snapshot.version, events)
        }
    }
}
