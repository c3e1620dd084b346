import HatoModel
import HatoRPC
import HatoTree

/// What is listened to: everybody with the same topic is sent the same bytes.
struct TopicKey: Sendable, Hashable {
    var database: DatabaseID
    var path: TreePath
    /// Nil: the whole node.
    var query: TreeQuery?
}

/// One thing that is listened to, and who does. Lives on the publisher's thread.
///
/// A listener is *live* when it has been sent everything up to the newest group; then an event is written once and
/// handed to all. The others lack something, which is being read for them or will be when their sockets drain. For
/// those whose reading is under way, `recent` keeps what the live ones are sent meanwhile, so that they end where the
/// live ones are instead of chasing them.
///
/// What takes long to tell is worked out on a reader's thread, from the state of its group; what comes meanwhile waits,
/// and is told next. Who would become live meanwhile waits too (`Parked`).
final class Topic {
    /// One notification: leads a listener that has everything up to `after` to `version`.
    struct Sent {
        var after: UInt64
        var version: UInt64
        var members: EncodedJSON
    }

    /// How changes become events.
    enum Telling {
        /// Of a query: its window has not been read, and nobody is live.
        case unread
        /// As they come. A whole node needs no window.
        case ready(QueryWindow?)
        /// On a reader's thread; the live ones have been told everything up to a version.
        case working(told: UInt64)
    }

    /// A listener that goes on when the topic is ready.
    enum Parked {
        case load(Listener.Ticket, ListenerReading.Wanted)
        /// Has been sent what was there at a version.
        case join(Listener.Ticket, UInt64)
    }

    let id: UInt64
    let key: TopicKey
    /// As of the newest group.
    var database: Database
    private(set) var live: [Listener] = []
    /// Those that are not live, by id.
    private(set) var others: [UInt64: Listener] = [:]
    var telling: Telling
    /// Commits that wait while something is worked out; nil: too many, so that all is read anew.
    private(set) var pending: [CommitNote]? = []
    private var pendingChanges = 0
    private var pendingBytes = 0
    private var parked: [Parked] = []
    /// Rows of the window that those who are parked wait for.
    var windowRows: RowCounter?
    /// Connections whose answers wait for this topic.
    var waitingConnections: Set<UInt64> = []
    /// Readings under way, by what they read.
    var readings: [ListenerReading.Wanted: TopicReading] = [:]
    /// The same by id, those too that nobody may join any more.
    var openReadings: [UInt64: TopicReading] = [:]
    var doneReadings = DoneReadings()
    /// The version of the last commit that touched the topic since the publisher knows it.
    private(set) var lastChanged: UInt64
    /// The same of those that the live ones have been told of.
    private var lastTold: UInt64
    /// Readings and joinings under way, for which `recent` is kept.
    private var loads = 0
    private var recent: [Sent] = []
    private var recentBytes = 0
    /// False when `recent` could not hold everything since the oldest reading under way began.
    private var isRecentWhole = true

    /// More than that to keep means that reading anew is cheaper.
    private static let recentBytesMax = 1 << 20
    /// Changes that may wait; beyond, everything is read anew.
    private static let pendingMax = 10_000
    private static let pendingBytesMax = 16 << 20

    init(id: UInt64, key: TopicKey, database: Database, version: UInt64) {
        self.id = id
        self.key = key
        self.database = database
        telling = key.query == nil ? .ready(nil) : .unread
        lastChanged = version
        lastTold = version
    }

    var isUnused: Bool { live.isEmpty && others.isEmpty }
    var listeners: [Listener] { live + others.values.sorted { $0.id < $1.id } }
    /// Whether somebody will ask for what is sent now.
    var needsEvents: Bool { !live.isEmpty || loads > 0 }

    // MARK: Commits

    func changed(at version: UInt64) { lastChanged = version }

    /// The live ones have been told of all commits up to one.
    func told(through version: UInt64) { lastTold = max(lastTold, min(version, lastChanged)) }

    func wait(_ notes: [CommitNote]) {
        pendingChanges += notes.reduce(0) { $0 + $1.changes.count }
        pendingBytes += notes.reduce(0) { $0 + $1.byteCount }
        if pendingChanges > Self.pendingMax || pendingBytes > Self.pendingBytesMax {
            pending = nil
        } else {
            pending?.append(contentsOf: notes)
        }
    }

    func takePending() -> [CommitNote]? {
        defer {
            pending = []
            pendingChanges = 0
            pendingBytes = 0
        }
        return pending
    }

    // MARK: What was sent lately

    func loadBegan() { loads += 1 }

    func loadEnded() {
        loads -= 1
        guard loads == 0 else { return }
        recent = []
        recentBytes = 0
        isRecentWhole = true
    }

    /// Keeps a notification for those who are being brought up to date.
    func keep(_ sent: Sent) {
        guard loads > 0, isRecentWhole else { return }
        recentBytes += sent.members.count
        recent.append(sent)
        if recentBytes > Self.recentBytesMax {
            recent = []
            isRecentWhole = false
        }
    }

    /// What leads from `version` to where the live ones are; nil when that cannot be told any more. Asked before
    /// `loadEnded`.
    func sent(after version: UInt64) -> ArraySlice<Sent>? {
        if lastTold <= version { return [] }
        guard isRecentWhole else { return nil }
        // What changed since could not be seen.
        guard let start = recent.firstIndex(where: { $0.version > version }) else { return [] }
        // One that begins before `version` would miss what came and went in between.
        return recent[start].after >= version ? recent[start...] : nil
    }

    // MARK: Who listens

    func park(_ step: Parked) {
        if case .join = step { loadBegan() }
        parked.append(step)
    }

    func takeParked() -> [Parked] {
        defer { parked = [] }
        return parked
    }

    func addLive(_ listener: Listener) {
        others[listener.id] = nil
        listener.state = .live(index: live.count)
        live.append(listener)
    }

    func addOther(_ listener: Listener, _ state: Listener.State) {
        removeLive(listener)
        listener.state = state
        others[listener.id] = listener
    }

    func remove(_ listener: Listener) {
        removeLive(listener)
        others[listener.id] = nil
        listener.state = .ended
    }

    /// Its place is filled by the last.
    private func removeLive(_ listener: Listener) {
        guard case .live(let index) = listener.state, index < live.count, live[index] === listener else { return }
        let last = live.removeLast()
        if index < live.count {
            live[index] = last
            last.state = .live(index: index)
        }
    }
}

/// A reading for all listeners of a topic that lack the same. Lives on the publisher's thread.
final class TopicReading {
    let id: UInt64
    /// Of the snapshot that is read.
    let version: UInt64
    /// Nil when nobody asks how many rows it reads.
    let rows: RowCounter?
    var listeners: [Listener.Ticket] = []

    init(id: UInt64, version: UInt64, rows: RowCounter?) {
        self.id = id
        self.version = version
        self.rows = rows
    }
}
