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
final class Topic {
    /// One notification: leads a listener that has everything up to `after` to `version`.
    struct Sent {
        var after: UInt64
        var version: UInt64
        var members: EncodedJSON
    }

    enum Window {
        /// A whole node needs none.
        case none
        /// Is being read as of a version; the changes since then wait (nil: too many).
        case loading(after: UInt64, pending: [PathChange]?)
        case ready(QueryWindow)
    }

    let id: UInt64
    let key: TopicKey
    /// As of the newest group.
    var database: Database
    private(set) var live: [Listener] = []
    /// Those that are not live, by id.
    var others: [UInt64: Listener] = [:]
    var window = Window.none
    /// The version of the last commit that touched the topic since the publisher knows it.
    private(set) var lastChanged: UInt64
    /// Readings under way for listeners.
    private var loads = 0
    private var recent: [Sent] = []
    private var recentBytes = 0
    /// False when `recent` could not hold everything since the oldest reading under way began.
    private var isRecentWhole = true

    /// More than that to keep means that reading anew is cheaper.
    private static let recentBytesMax = 1 << 20

    init(id: UInt64, key: TopicKey, database: Database, version: UInt64) {
        self.id = id
        self.key = key
        self.database = database
        lastChanged = version
    }

    var isUnused: Bool { live.isEmpty && others.isEmpty }
    /// Whether changes become events at once: a query needs its window for that.
    var isTold: Bool {
        guard key.query != nil else { return true }
        if case .ready = window { return true }
        return false
    }
    /// Whether somebody will ask for what is sent now.
    var needsEvents: Bool { !live.isEmpty || loads > 0 }

    func loadBegan() { loads += 1 }

    func loadEnded() {
        loads -= 1
        guard loads == 0 else { return }
        recent = []
        recentBytes = 0
        isRecentWhole = true
    }

    func changed(at version: UInt64) { lastChanged = version }

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

    /// What leads from `version` to the newest state; nil when that cannot be told any more. Asked before `loadEnded`.
    func sent(after version: UInt64) -> ArraySlice<Sent>? {
        if lastChanged <= version { return [] }
        guard isRecentWhole, let start = recent.firstIndex(where: { $0.version > version }) else { return nil }
        // One that begins before `version` would miss what came and went in between.
        return recent[start].after >= version ? recent[start...] : nil
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

/// One subscription of one connection. Lives on the publisher's thread.
final class Listener {
    enum State {
        /// Has been sent everything; `index` is its place in `Topic.live`.
        case live(index: Int)
        /// What it lacks is being read on a reader's thread.
        case loading
        /// Its socket is full, or it gathers its events; what it lacks is read when that ends.
        case waiting
        case ended
    }

    let id: UInt64
    let opening: Opening
    let topic: Topic
    var caller: Caller
    var state = State.waiting
    /// What it has not been told; kept while it is not live.
    var missed: MissedChanges
    /// Whether a timer runs that ends the gathering.
    var isScheduled = false

    var connection: RPCConnection { opening.connection }

    init(id: UInt64, _ opening: Opening, topic: Topic) {
        self.id = id
        self.opening = opening
        self.topic = topic
        caller = opening.caller
        missed = MissedChanges(of: topic.key.path)
    }

    /// Whether it wants its events gathered for a while.
    var gathers: Bool { opening.coalesceMs > 0 }

    /// Who wants to listen, and how.
    struct Opening: Sendable {
        var connection: RPCConnection
        var subscription: String
        var caller: Caller
        var coalesceMs: Int
        /// Kept so that it can be taken back.
        var watch: RPCWatch
    }
}
