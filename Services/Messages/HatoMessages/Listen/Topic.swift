import HatoModel
import HatoRPC
import HatoStorage
import HatoTree

/// What is listened to: all listeners of the same topic are sent the same bytes.
struct TopicKey: Sendable, Hashable {
    var database: DatabaseID
    var path: TreePath
    /// Nil: the whole node.
    var query: TreeQuery?
}

/// One thing that is listened to, and who does. Lives on the publisher's thread.
///
/// A listener is *live* when it has been sent everything up to the newest group; then an event is written once and
/// handed to all. The others are behind, and catch up (`ListenerStateMachine`).
///
/// Events that take long are computed on a reader's thread, as of the newest group when their turn comes; what comes
/// meanwhile waits, and is sent next. Listeners that would become live meanwhile wait too (`Waiting`); when that goes
/// on and on, they become live as of what the live ones were sent last (`SentState`).
final class Topic {
    /// How changes become events.
    enum EventState {
        /// Of a query: its window has not been read, and no listener is live.
        case unread
        /// As they come. A whole node needs no window.
        case ready(QueryWindow?)
        /// On a reader's thread, now or in turn; the live ones were sent everything up to a version.
        case working(sent: UInt64)
    }

    /// What waits for its turn to be computed on a reader's thread.
    struct Queued {
        var wanted: TopicUpdate.Wanted
        var window: QueryWindow?
        /// Whether it was tried as a short read and needed more.
        var isLong = false
    }

    /// A listener that goes on when the topic is ready.
    enum Waiting {
        case load(Listener.Ticket)
        /// Has been sent what was there at a version.
        case join(Listener.Ticket, UInt64)

        var ticket: Listener.Ticket {
            switch self {
            case .load(let ticket), .join(let ticket, _): ticket
            }
        }
    }

    /// The state up to which the live ones were sent everything, while more is being computed for them.
    struct SentState {
        var snapshot: any StoreSnapshot
        /// As of the snapshot.
        var database: Database
        var window: QueryWindow?
    }

    let id: UInt64
    let key: TopicKey
    /// What it takes in memory, without its listeners: its key, and its window, as last noted.
    private(set) var byteCount: Int
    private var windowBytes = 0
    /// As of the newest group.
    var database: Database
    private(set) var live: [Listener] = []
    /// Those that are not live, by id.
    private(set) var others: [UInt64: Listener] = [:]
    var events: EventState
    private var queued: Queued?
    private var queuedBytes = 0
    /// Commits that wait while something is computed; nil: too many, so that all is read anew.
    private(set) var pending: [TopicNote]? = []
    private var pendingChanges = 0
    private var pendingBytes = 0
    /// Of what waits, with what other topics share.
    private var pendingNoteBytes = 0
    private var waiting: [Waiting] = []
    /// Kept as long as listeners wait.
    private(set) var sentState: SentState?
    /// Rows of the window that those who are waiting wait for.
    var windowRows: RowCounter?
    /// The client of the listener that the window is read for first.
    var windowClient: String?
    /// Connections whose responses wait for this topic.
    var waitingConnections: Set<UInt64> = []
    /// Readings that wait or are under way and may be shared, by what they read.
    var readings: [ListenerReading.Wanted: TopicReading] = [:]
    var finishedReadings = FinishedReadings()
    var recent: RecentEvents
    /// What listeners that are not live lack; nil as long as all are live and nothing is being computed.
    private(set) var changes: ChangedPaths?
    private let budgets: TopicBudgets
    /// How many commits were noted for them.
    private(set) var noteCount = 0
    /// Listeners that wait for the next commit that changes the topic, by id.
    private var awaiting: [UInt64: Listener] = [:]

    /// Changes that may wait; beyond, everything is read anew.
    private static let pendingMax = 10_000
    private static let pendingNoteBytesMax = 16 << 20
    /// Smaller changes of what its window takes are not noted, so that not every event is for the tables.
    private static let windowChangeBytesMin = 4 << 10

    init(id: UInt64, key: TopicKey, database: Database, version: UInt64, _ budgets: TopicBudgets) {
        self.id = id
        self.budgets = budgets
        byteCount = ListenerCost.bytes(of: key)
        self.key = key
        self.database = database
        events = key.query == nil ? .ready(nil) : .unread
        recent = RecentEvents(version: version)
    }

    var isUnused: Bool { live.isEmpty && others.isEmpty }
    var listeners: [Listener] { live + others.values.sorted { $0.id < $1.id } }
    /// Whether some listener needs the events of now.
    var needsEvents: Bool { !live.isEmpty || recent.isNeeded }

    /// Whether events for the live ones are being computed.
    var isWorking: Bool { if case .working = events { true } else { false } }

    /// The version up to which the live ones were sent everything.
    var sentVersion: UInt64 {
        if case .working(let sent) = events { sent } else { max(recent.lastSent, changes?.start ?? 0) }
    }

    /// Notes what its window takes, when that is more or less than before by a good part.
    ///
    /// - Returns: by how much.
    func noteWindow() -> Int {
        guard case .ready(let window) = events else { return 0 }
        let change = (window?.byteCount ?? 0) - windowBytes
        guard abs(change) > max(Self.windowChangeBytesMin, windowBytes / 8) else { return 0 }
        windowBytes += change
        byteCount += change
        return change
    }

    // MARK: Commits

    func wait(_ notes: [TopicNote]) {
        guard pending != nil else { return }
        pendingChanges += notes.reduce(0) { $0 + $1.changes.count }
        pendingNoteBytes += notes.reduce(0) { $0 + $1.byteCount }
        let bytes = notes.reduce(0) { $0 + $1.keptBytes }
        // In full here: the other topics may have let go of them.
        guard pendingChanges <= Self.pendingMax, pendingNoteBytes <= Self.pendingNoteBytesMax,
            budgets.commits.takes(bytes)
        else {
            _ = takePending()
            return pending = nil
        }
        pendingBytes += bytes
        pending?.append(contentsOf: notes)
    }

    func takePending() -> [TopicNote]? {
        defer {
            budgets.commits.give(pendingBytes)
            pending = []
            pendingChanges = 0
            pendingBytes = 0
            pendingNoteBytes = 0
        }
        return pending
    }

    /// Waits for its turn on a reader's thread; the live ones were sent everything up to a version.
    func queue(_ queued: Queued, after sent: UInt64) {
        events = .working(sent: sent)
        self.queued = queued
        guard case .changes(let notes) = queued.wanted else { return }
        queuedBytes = notes.reduce(0) { $0 + $1.keptBytes }
        guard !budgets.commits.takes(queuedBytes) else { return }
        queuedBytes = 0
        self.queued?.wanted = .anew
    }

    /// Its turn has come: returns what was queued, with the commits since.
    func takeQueued() -> Queued? {
        guard var queued = queued.take() else { return nil }
        budgets.commits.give(queuedBytes)
        queuedBytes = 0
        let notes = takePending()
        if case .changes(let first) = queued.wanted {
            queued.wanted = notes.map { .changes(first + $0) } ?? .anew
        }
        return queued
    }

    /// It has no listeners any more: gives back the memory that all topics share.
    func end() {
        forgetChanges()
        _ = takeQueued()
        _ = takePending()
    }

    // MARK: What those lack that are not live

    /// From now on, or already, changes after a version are kept.
    func keepChanges(after version: UInt64) {
        if changes == nil { changes = ChangedPaths(of: key.path, hasQuery: key.query != nil, after: version) }
    }

    /// Notes commits for all listeners that are not live, once.
    func note(_ notes: [TopicNote]) {
        guard let before = changes?.byteCount, let last = notes.last else { return }
        for note in notes { changes?.add(note.changes, at: note.version) }
        noteCount += notes.count
        count(after: before, newest: last.version)
    }

    /// An earlier part of the history was searched for them.
    func learn(_ earlier: ChangedPaths, through end: UInt64) {
        guard let before = changes?.byteCount else { return }
        changes?.prepend(earlier, through: end)
        count(after: before, newest: max(end, recent.lastChanged))
    }

    private func count(after before: Int, newest: UInt64) {
        if !budgets.changes.takes((changes?.byteCount ?? 0) - before) {
            changes?.forget(through: newest)
            budgets.changes.give(before - (changes?.byteCount ?? 0))
        }
    }

    func forgetChanges() {
        budgets.changes.give(changes?.byteCount ?? 0)
        changes = nil
    }

    /// Whether some listeners may lack what commits change.
    var needsChanges: Bool { !others.isEmpty || isWorking }

    func await(_ listener: Listener) { awaiting[listener.id] = listener }

    func stopAwaiting(_ listener: Listener) { awaiting[listener.id] = nil }

    func takeAwaiting() -> [Listener] {
        guard !awaiting.isEmpty else { return [] }
        defer { awaiting = [:] }
        return awaiting.values.sorted { $0.id < $1.id }
    }

    // MARK: Listeners

    func wait(_ step: Waiting) {
        if case .join = step { recent.jobBegan() }
        waiting.append(step)
    }

    /// Takes those that may go on.
    func takeWaiting(where mayGoOn: (Waiting) -> Bool) -> [Waiting] {
        let all = waiting
        waiting = []
        var taken: [Waiting] = []
        for step in all {
            if mayGoOn(step) { taken.append(step) } else { waiting.append(step) }
        }
        return taken
    }

    /// More is being computed for the live ones, which were sent everything up to a state; nil: nothing is.
    func noteSent(_ state: SentState?) { sentState = waiting.isEmpty ? nil : state }

    func add(_ listener: Listener) { others[listener.id] = listener }

    func addLive(_ listener: Listener) {
        others[listener.id] = nil
        listener.liveIndex = live.count
        live.append(listener)
    }

    func leaveLive(_ listener: Listener) {
        keepChanges(after: sentVersion)
        removeLive(listener)
        others[listener.id] = listener
    }

    func remove(_ listener: Listener) {
        removeLive(listener)
        others[listener.id] = nil
        awaiting[listener.id] = nil
    }

    /// Its place is filled by the last.
    private func removeLive(_ listener: Listener) {
        guard let index = listener.liveIndex, index < live.count, live[index] === listener else { return }
        listener.liveIndex = nil
        let last = live.removeLast()
        if index < live.count {
            live[index] = last
            last.liveIndex = index
        }
    }
}

/// What topics keep of commits: parts of what listeners may take, apart from each other, so that what topics keep for
/// listeners that are behind takes nothing from those that are not.
struct TopicBudgets {
    /// The memory of all `Topic.changes`.
    let changes: ChangesBudget
    /// The memory of the commits that wait until topics have their turns.
    let commits: ChangesBudget

    init(_ limits: MessagesLimits) {
        changes = ChangesBudget(bytesMax: limits.listenersServiceBytesMax / 16)
        commits = ChangesBudget(bytesMax: limits.listenersServiceBytesMax / 16)
    }
}

/// Counts what all topics keep of commits. Lives on the publisher's thread.
final class ChangesBudget {
    private let bytesMax: Int
    private(set) var bytes = 0

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// False when so many bytes more are too many.
    func takes(_ count: Int) -> Bool {
        guard count <= 0 || count <= bytesMax - bytes else { return false }
        bytes += count
        return true
    }

    func give(_ count: Int) { bytes -= count }
}
