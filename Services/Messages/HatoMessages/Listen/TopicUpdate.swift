import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// What the live listeners of a topic are sent for some commits: computed on the publisher's thread as long as little
/// has to be read for it, else on a reader's thread.
struct TopicUpdate: Sendable {
    enum Wanted: Sendable {
        /// Only the window, for who comes next.
        case window
        /// Everything: too much has changed for single changes.
        case anew
        case changes([TopicNote])
    }

    let key: TopicKey
    /// As of the snapshot.
    let database: Database
    /// The state after the commits.
    var snapshot: any StoreSnapshot
    let bytesMax: Int
    private(set) var wanted: Wanted
    /// Of a query: before `work` as of the state before the commits, then as of the snapshot.
    var window: QueryWindow?

    var version: UInt64 { snapshot.version }
    /// The same for a later turn, as of a later version.
    var queued: Topic.Queued { Topic.Queued(wanted: wanted, window: window, isLong: hasManyChanges) }

    /// The members of a notification; nil when there is nothing to send. When this throws, the window is as it was, or
    /// all is wanted anew.
    mutating func work(_ meter: ReadingMeter? = nil) throws -> EncodedJSON? {
        let reading = NodeReading(database, in: snapshot, bytesMax: bytesMax, meter: meter)
        guard case .changes(let notes) = wanted else {
            if let query = key.query {
                let plan = QueryPlan(query, at: key.path, in: database.indexes)
                window = try QueryWindow(query, at: key.path, by: plan, reading: reading.runner)
            }
            if case .anew = wanted { return try EventMembers.whole(key, reading, window) }
            return nil
        }
        guard let query = key.query, let last = notes.last else { return try events(of: notes, reading) }
        guard var moved = window else { return nil }
        // The window is changed in place, unless that fails.
        window = nil
        do {
            moved.plan = QueryPlan(query, at: key.path, in: database.indexes)
            let members: EncodedJSON?
            switch try moved.apply(commits: notes.map(\.changes), reading: reading.runner) {
            case .nothing: members = nil
            case .fresh:
                // The window is that of now: applied again, the changes would show nothing.
                wanted = .anew
                members = try EventMembers.whole(key, reading, moved)
            case .events(let events): members = EventMembers.encode(version: last.version, events)
            }
            window = moved
            return members
        } catch {
            window = moved
            throw error
        }
    }

    /// Of a whole node: each commit has events of its own.
    private func events(of notes: [TopicNote], _ reading: NodeReading) throws -> EncodedJSON? {
        // More than a line may hold is sent as what is there now, which is refused where that is too much as well.
        if notes.reduce(0, { $0 + $1.byteCount }) > bytesMax { return try EventMembers.whole(key, reading) }
        var events: [ListenerEvent] = []
        for note in notes {
            switch ListenerUpdate(of: note.changes, at: key.path) {
            case .nothing: continue
            case .fresh: return try EventMembers.whole(key, reading)
            case .events(let more): events += more
            }
        }
        guard let last = notes.last, !events.isEmpty else { return nil }
        return EventMembers.encode(version: last.version, events)
    }
}

extension TopicUpdate {
    /// Changes that are sent from the publisher's thread; of more, working out the events would hold up all listeners.
    private static let changesMax = 256
    private static let changesBytesMax = 1 << 20

    /// Whether it takes long for sure.
    var isLong: Bool { if case .changes = wanted { hasManyChanges } else { true } }

    /// Whether its commits have so many changes that their events alone take long.
    var hasManyChanges: Bool {
        guard case .changes(let notes) = wanted else { return false }
        return notes.reduce(0) { $0 + $1.byteCount } > Self.changesBytesMax
            || notes.reduce(0) { $0 + $1.changes.count } > Self.changesMax
    }
}
