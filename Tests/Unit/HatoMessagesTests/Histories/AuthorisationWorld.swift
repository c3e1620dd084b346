import HatoModel
import HatoRPC
import HatoRules
import HatoStorage
import HatoTree
import Logging
import Synchronization
import TestStores

@testable import HatoMessages

/// A registry whose turns authorise one listener each, driven step by step: `a`, `b`, … are members with read access to
/// `/c` as long as `/open` is not false.
final class AuthorisationWorld {
    private let store: SteppedStore
    private let parts: ServiceParts
    private let queue: CommitQueue
    private let publisher: Publisher
    let registry: ListenerRegistry
    private let posts = Posts()
    private var lastID: UInt64 = 0

    private static let rules = """
        {"rules": {
          "c": {".read": "root.child('open').val() != false && root.child('members').child(auth.uid).exists()"}
        }}
        """

    /// What is to be done on the publisher's thread.
    private final class Posts: Sendable {
        private let waiting = Mutex<[Publisher.Body]>([])

        var line: Publisher.Line {
            Publisher.Line(
                post: { body in self.waiting.withLock { $0.append(body) } }, postLater: { _, _ in },
                setActive: { _ in })
        }

        var isEmpty: Bool { waiting.withLock { $0.isEmpty } }

        func next() -> Publisher.Body? { waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }

    init(_ change: (inout MessagesLimits) -> Void = { _ in }) async throws {
        store = try SteppedStore()
        var limits = MessagesLimits()
        limits.rightsTurnMs = 0
        limits.rightsClientMs = 100_000
        limits.eventsTurnMs = 100_000
        change(&limits)
        let logger = Logger(label: "doubts") { _ in SwiftLogNoOpLogHandler() }
        let slow = SlowOperations(SlowOperations.Settings(linesPerMinuteMax: 0), logger: logger, clock: { .zero })
        let parts = try ServiceParts(store, limits, slow, now: { 0 })
        self.parts = parts
        registry = ListenerRegistry(parts, logger: logger, line: posts.line)
        publisher = try Publisher { ListenerRegistry(parts, logger: logger, line: $0) }
        queue = try CommitQueue(parts, publisher: publisher)
        let rules = try Rules.compile(Self.rules)
        let administration = DatabaseAdministration(parts)
        _ = try await store.write { try administration.create(.default, rules, in: $0) }
        for group in store.takeGroups() { queue.groupBecameDurable(group) }
        var members: JSONObject = [:]
        for name in ["a", "b", "c", "d", "e"] { members[name] = true }
        try await write(.set(.object(members), at: "/members"))
    }

    deinit {
        publisher.close()
        store.close()
    }

    /// Listeners that wait for their authorisation.
    var inDoubt: Int { registry.listeners.values.count { $0.machine.isOutdated } }

    /// Commits, and publishes the commit to the registry. Returns the version.
    @discardableResult
    func write(_ mutation: Mutation) async throws -> UInt64 {
        let write = Write(database: .default, mutation: mutation, caller: .administrator)
        let queue = queue
        let committed = try await store.write { try queue.commit(write, in: $0) }
        for group in store.takeGroups() {
            queue.groupBecameDurable(group)
            registry.groupBecameDurable(group)
        }
        return committed.version
    }

    func newPeer() -> HistoryPeer {
        lastID += 1
        return HistoryPeer(id: lastID)
    }

    /// Listens to `/c` on a connection of its own.
    func listen(_ uid: String) throws -> HistoryPeer {
        let peer = newPeer()
        try listen(.user(Caller.User(uid: uid)), Messages.Listen(path: "/c"), on: peer, as: uid)
        return peer
    }

    /// - Parameter rows: counts what is read as of the snapshot that it begins with.
    func listen(
        _ caller: Caller, _ request: Messages.Listen, on peer: HistoryPeer, as subscription: String,
        countedBy rows: RowCounter? = nil
    ) throws {
        let opening = Listener.Opening(
            connection: peer, subscription: subscription, caller: caller, client: caller.uid,
            coalesceMs: request.coalesceMs ?? 0, endWatch: {})
        var snapshot: any StoreSnapshot = try store.snapshot()
        if let rows { snapshot = CountedSnapshot(snapshot, rows) }
        let view = ReadView(snapshot, parts.catalogue, bytesMax: parts.limits.responseBytesMax)
        registry.open(opening, request, at: view) { result in
            switch result {
            case .success(let result): peer.receive(.opened(subscription, result))
            case .failure(let error): peer.receive(.refused(subscription, "\(error)"))
            }
        }
    }

    var hasPosts: Bool { !posts.isEmpty }

    var waitingReads: Int { store.waitingReads }

    func runRead() { store.runRead(0) }

    /// The topic of a whole node.
    func topic(_ path: TreePath) -> Topic? { registry.topics.values.first { $0.key.path == path } }

    /// The same for several, who have seen their first values.
    func listening(_ uids: [String]) throws -> [HistoryPeer] {
        let peers = try uids.map { try listen($0) }
        finish()
        for peer in peers { _ = peer.takeInbox() }
        return peers
    }

    /// The response to a write of `peer` comes by.
    func respond(_ peer: HistoryPeer, _ version: UInt64) {
        registry.respond(peer.id, after: EarlierEvents(.success(version))) {
            peer.receive(.answered(version, hasWritten: true))
        }
    }

    /// One turn of the publisher's thread.
    func step() { posts.next()?(registry) }

    func runReads() {
        while store.waitingReads > 0 { store.runRead(0) }
    }

    /// Until nothing is left to do.
    func finish() {
        while true {
            if let post = posts.next() {
                post(registry)
            } else if store.waitingReads > 0 {
                store.runRead(0)
            } else {
                return
            }
        }
    }
}
