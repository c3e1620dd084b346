import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTesting
import HatoTree
import Logging
import Synchronization
import TestStores

@testable import HatoMessages

/// One random history of one database, on one thread: commits, listeners that come, go, fall behind and come back, and
/// in between, one at a time and in any order, what other threads would do. The seed repeats it.
final class HistoryWorld {
    private var writes: RandomWrites
    private let store: SteppedStore
    private let parts: ServiceParts
    private let queue: CommitQueue
    private let publisher: Publisher
    private let registry: ListenerRegistry
    private let posts: Posts
    private var states: [HistoryState] = []
    /// Commits that were not handed to the registry yet, with the writers that wait for their responses.
    private var unpublished: [Commit] = []
    private var answers: [(HistoryPeer, UInt64, hasWritten: Bool)] = []
    private var peers: [HistoryPeer] = []
    private var listeners: [HistoryListener] = []
    private var lastID: UInt64 = 0
    /// What happened, for who repeats a history.
    private(set) var story: [String] = []
    private let tellsStory: Bool

    static let rules = [
        """
        {"rules": {
          "c": {".read": "root.child('open').val() == true || root.child('members/' + auth.uid).exists()",
            "$room": {".indexOn": ["date", "author/name", ".value"]}}
        }}
        """,
        """
        {"rules": {"c": {
          "a": {".read": "auth.uid == 'masuo' && data.child('m1').exists()", ".indexOn": "author/name"},
          "b": {".read": "data.parent().parent().child('open').val() != false", ".indexOn": ["date"]}}
        }}
        """,
        #"{"rules": {".read": "auth != null", "c": {"$room": {".indexOn": ["date", ".value"]}}}}"#,
    ]

    /// What other threads want done on the publisher's thread.
    private final class Posts: Sendable {
        private let waiting = Mutex<[Publisher.Body]>([])
        private let timers = Mutex<[Publisher.Body]>([])

        var line: Publisher.Line {
            Publisher.Line(
                post: { body in self.waiting.withLock { $0.append(body) } },
                postLater: { _, body in self.timers.withLock { $0.append(body) } }, setActive: { _ in })
        }

        func next() -> Publisher.Body? { waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() } }

        /// Lets the time of one that waits pass.
        func passTime() -> Bool {
            guard let body = timers.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return false }
            waiting.withLock { $0.append(body) }
            return true
        }
    }

    init(seed: UInt64, tellsStory: Bool = false) throws {
        self.tellsStory = tellsStory
        writes = RandomWrites(random: SeededRandom(seed: seed))
        store = try SteppedStore()
        var limits = MessagesLimits()
        limits.eventRowsMax = writes.random.pick([1, 6, 20, 1_000])
        limits.resumeCommitsMax = writes.random.pick([3, 50_000])
        limits.catchUpBytesMax = writes.random.pick([200, 1 << 20])
        // Every event is shared, or none.
        limits.sharedEventBytesMin = writes.random.pick([1, 1 << 20])
        // One right in each turn, or all at once.
        limits.rightsTurnMs = writes.random.pick([0, 100_000])
        limits.rightsClientMs = 100_000
        // The events of one topic in each turn, or of all.
        limits.eventsTurnMs = writes.random.pick([0, 100_000])
        limits.topicUpdatesMax = writes.random.pick([1, 2, 64])
        let logger = Logger(label: "history") { _ in SwiftLogNoOpLogHandler() }
        let slow = SlowOperations(SlowOperations.Settings(linesPerMinuteMax: 0), logger: logger, clock: { .zero })
        let parts = try ServiceParts(store, limits, slow, now: { 0 })
        self.parts = parts
        posts = Posts()
        registry = ListenerRegistry(parts, logger: logger, line: posts.line)
        publisher = try Publisher { ListenerRegistry(parts, logger: logger, line: $0) }
        queue = try CommitQueue(parts, publisher: publisher)
        for _ in 0..<3 { addPeer() }
    }

    deinit {
        publisher.close()
        store.close()
    }

    private var random: SeededRandom {
        get { writes.random }
        set { writes.random = newValue }
    }

    func run(steps: Int) throws {
        let rules = try Rules.compile(Self.rules[0])
        let administration = DatabaseAdministration(parts)
        let created = try store.commit { try administration.create(.default, rules, in: $0) }
        states.append(HistoryState(version: created.version, node: .empty, rules: rules))
        adoptGroups()
        unpublished = []
        for _ in 0..<steps {
            try step()
            try lookAtInboxes()
            try registry.checkBytes(of: ["masuo", "sazae"])
        }
        try finish()
        for peer in peers { registry.connectionClosed(peer.id) }
        try registry.checkBytes(of: ["masuo", "sazae"])
    }

    private func trace(_ what: @autoclosure () -> String) {
        if tellsStory { story.append(what()) }
    }

    // MARK: Steps

    private func step() throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<34:
            try write()
            if random.chance(2, in: 3) { publish() }
        case 34..<46: try open()
        case 46..<50: try reconnect()
        case 50..<54: random.pick(peers).isFull.toggle()
        case 54..<58: _ = random.pick(peers).drain()
        case 58..<60: try setRules()
        case 60..<64: try buildIndex()
        case 64..<66: _ = posts.passTime()
        case 66..<67: try store.compactCommits(through: random.pick(states).version)
        case 67..<70: unlisten()
        case 70..<84:
            let count = store.waitingReads
            if count > 0 { store.runRead(Int.random(in: 0..<count, using: &random)) }
        default: posts.next()?(registry)
        }
    }

    private func write() throws {
        let mutation = try writes.write(store.version)
        let write = Write(database: .default, mutation: mutation, caller: .administrator)
        let queue = queue
        let committed = try store.commit { try queue.commit(write, in: $0) }
        let newest = states[states.count - 1]
        trace("\(committed.version): \(mutation.path) \(mutation.operation)")
        if committed.version > newest.version {
            states.append(
                HistoryState(version: committed.version, node: try newest.node.after(mutation), rules: newest.rules))
        }
        adoptGroups()
        answers.append((random.pick(peers), committed.version, committed.version > newest.version))
    }

    private func adoptGroups() {
        for group in store.takeGroups() {
            unpublished += group.commits
            queue.groupBecameDurable(group)
        }
    }

    /// What was written since the last time becomes durable with one sync.
    private func publish() {
        if let snapshot = try? store.snapshot(), !unpublished.isEmpty {
            trace("published \(unpublished.map(\.version))")
            registry.groupBecameDurable(CommitGroup(commits: unpublished, snapshot: snapshot))
        }
        unpublished = []
        for (peer, version, hasWritten) in answers {
            registry.respond(peer.id, after: EarlierEvents(.success(version))) {
                peer.receive(.answered(version, hasWritten: hasWritten))
            }
        }
        answers = []
    }

    private func setRules() throws {
        let rules = try Rules.compile(random.pick(Self.rules))
        let administration = DatabaseAdministration(parts)
        let set = try store.commit { try administration.setRules(.default, rules, in: $0) }
        trace("\(set.version): rules")
        states.append(HistoryState(version: set.version, node: states[states.count - 1].node, rules: rules))
        adoptGroups()
        if random.chance(1, in: 2) { publish() }
    }

    private func buildIndex() throws {
        let parts = parts
        _ = try store.commit { try IndexBuilds.buildPage(of: .default, in: $0, parts) }
        adoptGroups()
    }

    // MARK: Listeners

    @discardableResult
    private func addPeer() -> HistoryPeer {
        lastID += 1
        let peer = HistoryPeer(id: lastID)
        peers.append(peer)
        return peer
    }

    private func open() throws {
        guard listeners.count < 12 else { return }
        let path = try TreePath(random.pick(["/", "/c", "/c/a", "/c/a", "/c/b", "/c/a/m1", "/c/b/m1/date"]))
        let hasQuery = path.depth <= 2 && random.chance(2, in: 3)
        var request = Messages.Listen(path: path, query: hasQuery ? try writes.query() : nil)
        if random.chance(1, in: 5) { request.coalesceMs = 20 }
        let caller: Caller = random.pick([
            .administrator, .user(Caller.User(uid: "masuo")), .user(Caller.User(uid: "sazae")),
        ])
        let listener = HistoryListener(request, by: caller, on: random.pick(peers), as: "")
        listeners.append(listener)
        try listen(listener, request)
    }

    /// Like a request that comes between two groups.
    private func listen(_ listener: HistoryListener, _ request: Messages.Listen) throws {
        publish()
        lastID += 1
        let (peer, subscription) = (listener.peer, "s\(lastID)")
        listener.subscription = subscription
        listener.isOpen = false
        listener.asked = states[states.count - 1].version
        let has = "since \(request.since ?? 0), etag \(request.etag ?? "none")"
        trace("\(subscription) on \(peer.id): \(listener.name), \(has)")
        let opening = Listener.Opening(
            connection: peer, subscription: subscription, caller: listener.caller, client: listener.caller.uid,
            coalesceMs: request.coalesceMs ?? 0, endWatch: {})
        let view = ReadView(try store.snapshot(), parts.catalogue, bytesMax: parts.limits.responseBytesMax)
        registry.open(opening, request, at: view) { result in
            switch result {
            case .success(let result): peer.receive(.opened(subscription, result))
            case .failure(let error): peer.receive(.refused(subscription, "\(error)"))
            }
        }
    }

    private func unlisten() {
        guard !listeners.isEmpty else { return }
        let listener = listeners.remove(at: Int.random(in: 0..<listeners.count, using: &random))
        _ = registry.unlisten(listener.peer, listener.subscription)
    }

    /// A connection is lost; its listeners come back on another, from where they were or anew.
    private func reconnect() throws {
        let old = peers.remove(at: Int.random(in: 0..<peers.count, using: &random))
        old.close()
        answers.removeAll { $0.0 === old }
        let peer = addPeer()
        for listener in listeners where listener.peer === old {
            listener.peer = peer
            // What the response did not bring is not known.
            if !listener.isOpen || random.chance(1, in: 4) { listener.forget() }
            var request = Messages.Listen(path: listener.path, query: listener.query)
            request.coalesceMs = listener.coalesceMs
            if listener.version > 0 {
                if random.chance(3, in: 4) {
                    request.since = listener.version
                    request.epoch = random.chance(1, in: 10) ? "other" : store.epoch.description
                }
                if random.chance(1, in: 3), listener.query == nil {
                    request.etag = SimpleHash.etag(listener.sight.node)
                }
                // Versions of another history are not compared with.
                if request.epoch != store.epoch.description { listener.forgetVersion() }
            }
            try listen(listener, request)
        }
    }

    // MARK: What is seen

    private func state(at version: UInt64) -> HistoryState {
        states.last { $0.version <= version } ?? states[0]
    }

    private func lookAtInboxes() throws {
        for peer in peers {
            for item in peer.takeInbox() { try look(at: item, on: peer) }
            if peer.hasRefused, !peer.isFull, !peer.hasDrains, isUpToDate(peer) { peer.hasRefused = false }
        }
        listeners.removeAll(where: \.hasEnded)
    }

    private func isUpToDate(_ peer: HistoryPeer) -> Bool {
        registry.listeners.values.filter { $0.connection === peer }.allSatisfy {
            switch $0.machine.state {
            case .live, .behind(_, .gathering): true
            case .behind, .ended: false
            }
        }
    }

    private func look(at item: HistoryPeer.Item, on peer: HistoryPeer) throws {
        trace("    \(peer.id) < \(item.text)")
        func listener(_ subscription: String) -> HistoryListener? {
            listeners.first { $0.subscription == subscription && $0.peer === peer }
        }
        switch item {
        case .opened(let subscription, let result):
            guard let listener = listener(subscription) else { return }
            listener.isOpen = true
            // The first event may still wait for room.
            guard !peer.hasRefused else { return }
            listener.knows(result.version)
            try check(listener, "when it was opened")
        case .refused(let subscription, let error):
            guard let listener = listener(subscription) else { return }
            try checkEnd(listener, "refused: \(error)")
        case .notification(let method, let subscription, let members):
            guard let listener = listener(subscription) else { return }
            if listener.hasEnded { throw HistoryFailure("\(listener.name) heard something after its end") }
            if method == Messages.Cancelled.method { return try checkEnd(listener, "cancelled: \(members.text)") }
            let text = "{\"subscription\":\"\(subscription)\",\(members.text)}"
            try listener.hear(
                Messages.Event(json: JSONParser.parse(Array(text.utf8)), unknown: .rejected))
            try check(listener, "when it was sent")
        case .answered(let version, let hasWritten): try checkResponse(version, hasWritten, on: peer)
        }
    }

    private func check(_ listener: HistoryListener, _ when: String) throws {
        // A value that was read just before it came is shared when nothing of it has changed since.
        let authorised = state(at: max(listener.version, listener.asked))
        if let problem = try listener.problem(state(at: listener.version), authorised: authorised) {
            throw HistoryFailure("\(listener.name) \(when): \(problem)")
        }
    }

    /// Only who lost the right at some time since is cancelled.
    private func checkEnd(_ listener: HistoryListener, _ what: String) throws {
        listener.hasEnded = true
        let first = states.lastIndex { $0.version <= listener.asked } ?? 0
        for state in states[first...] where try !listener.mayRead(state) { return }
        throw HistoryFailure("\(listener.name) was \(what)")
    }

    /// Own events come before own responses.
    private func checkResponse(_ version: UInt64, _ hasWritten: Bool, on peer: HistoryPeer) throws {
        guard !peer.hasRefused else { return }
        for listener in listeners where listener.peer === peer && listener.isOpen && !listener.hasEnded {
            let expected = listener.view(of: state(at: version).node)
            // A listener that gathers events gets only its own writes at once.
            let before = listener.view(of: state(at: version - 1).node)
            if listener.coalesceMs > 0, !hasWritten || expected == before { continue }
            // Of a window that changed and changed back before it could be sent nothing is sent.
            let isThere = listener.version >= version || sees(listener, aStateSince: version)
            guard isThere else {
                throw HistoryFailure("\(listener.name) at \(listener.version) was answered \(version) before its event")
            }
        }
    }

    private func sees(_ listener: HistoryListener, aStateSince version: UInt64) -> Bool {
        let since = [state(at: version)] + states.filter { $0.version > version }
        return since.contains { listener.view(of: $0.node) == listener.sight.node }
    }

    // MARK: The end

    private func finish() throws {
        publish()
        for peer in peers { peer.isFull = false }
        var isBusy = true
        while isBusy {
            isBusy = false
            while let post = posts.next() {
                isBusy = true
                post(registry)
            }
            if store.waitingReads > 0 {
                isBusy = true
                store.runRead(0)
            }
            for peer in peers where peer.drain() { isBusy = true }
            if posts.passTime() { isBusy = true }
            try lookAtInboxes()
        }
        let newest = states[states.count - 1]
        for listener in listeners {
            guard listener.isOpen else { throw HistoryFailure("\(listener.name) was never answered") }
            listener.knows(newest.version)
            try check(listener, "at the end")
        }
        if registry.listenerCount != listeners.count {
            throw HistoryFailure("\(registry.listenerCount) listeners instead of \(listeners.count)")
        }
        for peer in peers where registry.delayedResponses.hasResponses(to: peer.id) {
            throw HistoryFailure("a write of \(peer.id) was never answered")
        }
        for peer in peers { peer.close() }
        while let post = posts.next() { post(registry) }
        if registry.listenerCount != 0 || !registry.topics.isEmpty || registry.current != nil {
            throw HistoryFailure("something was left behind")
        }
    }
}
