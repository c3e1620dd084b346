import HatoModel
import NIOCore
import Synchronization

/// The connections of one event loop, and the mailbox through which other threads reach them.
///
/// However many responses and notifications other threads post, the loop is woken once until it has taken them all, and
/// each connection they touch writes once. Per thread and connection they arrive in the order posted.
///
/// `@unchecked Sendable`: what is not behind the mutex is touched on `loop` only.
final class LoopHub: @unchecked Sendable {
    enum Item {
        case response(RPCConnection, RequestTicket, [UInt8]?, isError: Bool)
        case notification(RPCConnection, OutgoingNotification)
        case opened(RPCConnection, subscription: String, by: UInt64)
        case run(RPCConnection, @Sendable (ConnectionHandler) -> Void)
    }

    let loop: any EventLoop
    let server: ServerState
    private let mailbox = Mutex<[Item]>([])
    /// Changed under the mutex only; true from the first item until the loop takes them.
    private let isWoken = Atomic(false)
    /// Changed under the mutex only; from then on what is posted is let go: all connections have closed.
    private let isStopped = Atomic(false)

    // Loop only.
    private var handlers: [UInt64: ConnectionHandler] = [:]
    private var touched: [ConnectionHandler] = []
    /// The array the mailbox had before: given back empty, so that neither is allocated anew.
    private var spare: [Item] = []
    private var sweep: RepeatedTask?
    private var watch: RepeatedTask?
    private(set) var counts = LoopCounts()
    private var emptied: EventLoopPromise<Void>?

    init(loop: any EventLoop, server: ServerState) {
        self.loop = loop
        self.server = server
    }

    // MARK: Any thread

    func post(_ item: Item) {
        let wasWoken = mailbox.withLock { items in
            guard !isStopped.load(ordering: .relaxed) else { return true }
            items.append(item)
            return isWoken.exchange(true, ordering: .acquiringAndReleasing)
        }
        if !wasWoken { loop.execute { self.drain() } }
    }

    /// Before its loop ends.
    func stop() { mailbox.withLock { _ in isStopped.store(true, ordering: .releasing) } }

    /// Runs on the loop, or here when the loop has ended.
    func execute(_ body: @escaping @Sendable () -> Void) {
        if isStopped.load(ordering: .acquiring) { body() } else { loop.execute(body) }
    }

    var isMailboxEmpty: Bool { !isWoken.load(ordering: .acquiring) }

    // MARK: On the loop

    private func drain() {
        var items = spare
        mailbox.withLock { posted in
            swap(&items, &posted)
            isWoken.store(false, ordering: .releasing)
        }
        for item in items {
            switch item {
            case .response(let connection, let ticket, let response, let isError):
                touch(connection)?.responded(ticket, response, isError: isError)
            case .notification(let connection, let notification): touch(connection)?.deliver(notification)
            case .opened(let connection, let subscription, let sequence):
                connection.handler?.subscriptionOpened(subscription, by: sequence)
            case .run(let connection, let body):
                if let handler = touch(connection) { body(handler) }
            }
        }
        items.removeAll(keepingCapacity: items.count < 4_096)
        spare = items
        let handlers = touched
        touched.removeAll(keepingCapacity: touched.count < 4_096)
        for handler in handlers { handler.settle() }
    }

    private func touch(_ connection: RPCConnection) -> ConnectionHandler? {
        guard let handler = connection.handler else { return nil }
        if handler.touch() { touched.append(handler) }
        return handler
    }

    func add(_ handler: ConnectionHandler) {
        handlers[handler.connection.id] = handler
        counts.connections += 1
        counts.accepted += 1
        if sweep == nil { startSweeping() }
    }

    func remove(_ handler: ConnectionHandler) {
        handlers[handler.connection.id] = nil
        counts.connections -= 1
        if handlers.isEmpty {
            sweep?.cancel()
            sweep = nil
            watch?.cancel()
            watch = nil
            emptied?.succeed(())
            emptied = nil
        }
    }

    /// Lets every connection finish; the future succeeds when the last one has closed, which `grace` enforces.
    func finishAll(within grace: TimeAmount) -> EventLoopFuture<Void> {
        let promise = loop.makePromise(of: Void.self)
        forEachHandler { handler in
            handler.finishAndClose()
            handler.settle()
        }
        guard !handlers.isEmpty else {
            promise.succeed(())
            return promise.futureResult
        }
        emptied = promise
        loop.scheduleTask(in: grace) { self.forEachHandler { $0.cutOff(RPCError.stopping) } }
        return promise.futureResult
    }

    func count(_ change: (inout LoopCounts) -> Void) { change(&counts) }

    func forEachHandler(_ body: (ConnectionHandler) -> Void) {
        for handler in Array(handlers.values) { body(handler) }
    }

    /// Timers for all connections of the loop: an idle connection has none of its own.
    private func startSweeping() {
        let idle = TimeAmount.seconds(Int64(server.limits.idleSecondsMax))
        let interval = TimeAmount.nanoseconds(max(idle.nanoseconds / 10, 50_000_000))
        sweep = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [weak self] _ in
            guard let self else { return }
            let oldest = NIODeadline.now() - idle
            self.forEachHandler { $0.closeIfIdle(since: oldest) }
        }
        let look = PeerSilence.interval(server.limits)
        watch = loop.scheduleRepeatedTask(initialDelay: look, delay: look) { [weak self] _ in
            self?.forEachHandler { $0.closeIfVanished() }
        }
    }
}

/// What one loop has counted, for the metrics.
struct LoopCounts: Sendable {
    var connections = 0
    var accepted = 0
    var requests = 0
    var errors = 0
    var notificationsSent = 0
    var bytesRead = 0
    var bytesWritten = 0
    /// Peers that were cut off because they took nothing while others waited for memory.
    var stalledPeers = 0

    static func + (left: LoopCounts, right: LoopCounts) -> LoopCounts {
        LoopCounts(
            connections: left.connections + right.connections, accepted: left.accepted + right.accepted,
            requests: left.requests + right.requests, errors: left.errors + right.errors,
            notificationsSent: left.notificationsSent + right.notificationsSent,
            bytesRead: left.bytesRead + right.bytesRead, bytesWritten: left.bytesWritten + right.bytesWritten,
            stalledPeers: left.stalledPeers + right.stalledPeers)
    }
}

/// A notification on its way to one peer: its params are the subscription and `members`.
struct OutgoingNotification: Sendable {
    var method: String
    var subscription: String
    var members: EncodedJSON

    /// About what it adds to a socket's queue.
    var byteCount: Int { method.utf8.count + subscription.utf8.count + members.count + 64 }
}
