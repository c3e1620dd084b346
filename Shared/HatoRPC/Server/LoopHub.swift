import HatoModel
import NIOCore
import Synchronization

/// The connections of one event loop, and the mailbox through which other threads reach them.
///
/// However many responses and notifications other threads post, the loop is woken once until it has taken them all, and
/// each connection they touch writes once. Per thread and connection they arrive in the order posted.
///
/// A loop runs tasks as long as there are new ones, and responses let further requests start. So what is left after a
/// millisecond waits until the loop has looked at its sockets: otherwise clients that have sent thousands of requests
/// would keep all others from being heard.
///
/// **Turns.** What requests wait for is done at once. Notifications are sent in turns of a bounded size, in which the
/// connections that have some take turns, too; between two turns of the loop it reads from its sockets and responds. So
/// the notifications of some connections delay neither the requests of others nor their notifications by much.
///
/// `@unchecked Sendable`: what is not behind the mutex is touched on `loop` only.
final class LoopHub: @unchecked Sendable {
    enum Item {
        case response(RPCConnection, RequestTicket, [UInt8]?, isError: Bool)
        case notification(RPCConnection, OutgoingNotification)
        case opened(RPCConnection, subscription: String, by: UInt64)
        case run(RPCConnection, @Sendable (ConnectionHandler) -> Void)

        var connection: RPCConnection {
            switch self {
            case .response(let connection, _, _, _), .notification(let connection, _), .opened(let connection, _, _),
                .run(let connection, _):
                connection
            }
        }

        var isNotification: Bool { if case .notification = self { true } else { false } }

        /// Whether it leads to output, whose order counts.
        var isOutput: Bool { if case .run = self { false } else { true } }
    }

    let loop: any EventLoop
    let server: ServerState
    private let mailbox = Mutex<[Item]>([])
    /// Changed under the mutex only; true from the first item until the loop takes them.
    private let isWoken = Atomic(false)
    /// Changed under the mutex only; from then on what is posted is let go: all connections have closed.
    private let isStopped = Atomic(false)
    /// From a call of `endIdentities` until the loop begins with it.
    private let isEndingIdentities = Atomic(false)

    // Loop only.
    /// When the mailbox was emptied first since the loop has looked at its sockets; nil: it was not.
    private var emptiedSince: NIODeadline?
    /// When it was emptied last: after a pause it waits for nothing.
    private var emptiedAt = NIODeadline.distantPast
    private let emptyingTimeMax: TimeAmount
    private var isDrainScheduled = false
    private var handlers: [UInt64: ConnectionHandler] = [:]
    private var touched: [ConnectionHandler] = []
    private var turns = NotificationTurns()
    /// Whether a turn for notifications follows, after the loop has read from its sockets.
    private var isTurnScheduled = false
    /// The array the mailbox had before: given back empty, so that neither is allocated anew.
    private var spare: [Item] = []
    private var sweep: RepeatedTask?
    private var watch: RepeatedTask?
    private(set) var counts = LoopCounts()
    private var emptied: EventLoopPromise<Void>?

    init(loop: any EventLoop, server: ServerState, emptyingTimeMax: TimeAmount = .milliseconds(1)) {
        self.loop = loop
        self.server = server
        self.emptyingTimeMax = emptyingTimeMax
    }

    // MARK: Any thread

    func post(_ item: Item) {
        let wasWoken = mailbox.withLock { items in
            guard !isStopped.load(ordering: .relaxed) else { return true }
            if item.isOutput { item.connection.outputWasPosted() }
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

    /// Ends the listeners whose identity has ended before its token.
    func endIdentities() {
        guard !isEndingIdentities.exchange(true, ordering: .acquiringAndReleasing) else { return }
        execute {
            self.isEndingIdentities.store(false, ordering: .sequentiallyConsistent)
            self.forEachHandler { $0.endIdentities() }
        }
    }

    /// Whether no output that was posted for a connection waits. On the loop.
    func hasDelivered(to connection: RPCConnection) -> Bool {
        !connection.hasPostedOutput && !turns.isWaiting(connection)
    }

    // MARK: On the loop

    /// A connection has read.
    func hasRead() { emptiedSince = nil }

    private static let settledAtOnce = 16
    /// A task without a delay would run before the loop looks at its sockets.
    private static let socketsFirst = TimeAmount.microseconds(20)

    private func drain() {
        let now = NIODeadline.now()
        let start = now - emptiedAt > emptyingTimeMax ? now : emptiedSince ?? now
        emptiedSince = start
        guard now - start <= emptyingTimeMax else { return drainAfterSockets() }
        var items = spare
        mailbox.withLock { posted in
            swap(&items, &posted)
            isWoken.store(false, ordering: .releasing)
        }
        var left = isTurnScheduled ? 0 : server.limits.notificationsPerTurnMax
        let isLarge = items.count >= 4_096
        // Taken out of the array, so that nothing is copied.
        items.reverse()
        while let item = items.popLast() {
            if item.isOutput { item.connection.outputWasTaken() }
            take(item, &left)
        }
        spare = isLarge ? [] : items
        settleTouched(since: start)
        takeTurns(&left)
        emptiedAt = .now()
    }

    /// Some at least; the others come in their turn.
    private func settleTouched(since start: NIODeadline) {
        let handlers = touched
        touched = []
        for (index, handler) in handlers.enumerated() {
            handler.settle()
            guard index % Self.settledAtOnce == 0, NIODeadline.now() - start > emptyingTimeMax else { continue }
            touched = Array(handlers[(index + 1)...]) + touched
            break
        }
        if !touched.isEmpty { drainAfterSockets() }
    }

    private func drainAfterSockets() {
        guard !isDrainScheduled else { return }
        isDrainScheduled = true
        loop.scheduleTask(in: Self.socketsFirst) {
            self.isDrainScheduled = false
            self.emptiedSince = nil
            self.drain()
        }
    }

    /// - Parameter left: how many notifications fit into this turn.
    private func take(_ item: consuming Item, _ left: inout Int) {
        guard let handler = item.connection.handler else { return }
        let isNotification = item.isNotification
        if turns.isWaiting(handler.connection) || isNotification && left <= 0 { return turns.wait(item) }
        deliver(item, to: handler)
        if isNotification {
            left -= 1
            turns.lineUp(handler.connection)
        } else if handler.touch() {
            touched.append(handler)
        }
    }

    private func deliver(_ item: consuming Item, to handler: ConnectionHandler) {
        switch consume item {
        case .response(_, let ticket, let response, let isError):
            handler.responded(ticket, response, isError: isError)
        case .notification(_, let notification): handler.deliver(notification)
        case .opened(_, let subscription, let sequence): handler.subscriptionOpened(subscription, by: sequence)
        case .run(_, let body): body(handler)
        }
    }

    /// Lets connections write the notifications they were given, and gives them those that wait.
    private func takeTurns(_ left: inout Int) {
        while left > 0, let (connection, items) = turns.takeNext() {
            left -= NotificationTurns.writeCost + items.count
            for item in items { if let handler = connection.handler { deliver(item, to: handler) } }
            connection.handler?.settle()
        }
        guard !turns.isEmpty, !isTurnScheduled else { return }
        isTurnScheduled = true
        loop.scheduleTask(in: Self.socketsFirst) {
            self.isTurnScheduled = false
            var left = self.server.limits.notificationsPerTurnMax
            self.takeTurns(&left)
        }
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
    /// What is counted in the budget of the process (`ProcessBudget`).
    var heldBytes = 0

    static func + (left: LoopCounts, right: LoopCounts) -> LoopCounts {
        LoopCounts(
            connections: left.connections + right.connections, accepted: left.accepted + right.accepted,
            requests: left.requests + right.requests, errors: left.errors + right.errors,
            notificationsSent: left.notificationsSent + right.notificationsSent,
            bytesRead: left.bytesRead + right.bytesRead, bytesWritten: left.bytesWritten + right.bytesWritten,
            stalledPeers: left.stalledPeers + right.stalledPeers, heldBytes: left.heldBytes + right.heldBytes)
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
