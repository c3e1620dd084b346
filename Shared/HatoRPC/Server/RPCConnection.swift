public import HatoModel
import NIOCore
import Synchronization

/// One peer of a server, as the methods it calls see it. May be used from any thread.
public final class RPCConnection: Sendable {
    private struct State {
        var caller = Caller.nobody
        var isClosed = false
        var nextWatch: UInt64 = 0
        var closeWatches: [UInt64: @Sendable () -> Void] = [:]
        var drainWatches: [@Sendable () -> Void] = []
        var identityWatches = IdentityWatches()
        var eventMemory = AwaitedMemory.none
        /// Nil: it does not forward.
        var forwarding: Forwarding?
    }

    /// Memory of the process's budget for an event that was refused.
    private enum AwaitedMemory {
        case none
        /// The budget was not asked to call when it is free.
        case wanted(count: Int, event: UInt64)
        case awaited
    }

    /// The number of the connection, which no other connection of the server has.
    public let id: UInt64
    /// The address of the socket's peer.
    public let remoteAddress: String
    /// The same as limits count it.
    let socketAddress: ClientAddress

    let hub: LoopHub
    private let state = Mutex(State())
    /// Bytes on their way to the peer: posted, queued, or given to the socket and not yet taken.
    private let unsent = Atomic(0)
    /// How much of it other connections share.
    private let unsentShared = Atomic(0)
    /// Whether there are callbacks of `onDrain`; changed under the mutex.
    private let awaitsDrain = Atomic(false)
    /// The largest notification that was refused since the last drain callback.
    private let refused = Atomic(0)
    private let hasClosed = Atomic(false)
    private let holdsTurn = Atomic(false)
    /// Responses and notifications that lie in the hub's mailbox; raised under its mutex.
    private let postedOutput = Atomic(0)
    private let nextSubscription = Atomic<UInt64>(1)
    /// Stands in the names of this connection's subscriptions, so that one of another connection is never meant: a peer
    /// that lost its connection and ends what it had there must not end what it has here.
    private let subscriptionMark = String(UInt32.random(in: .min ... .max), radix: 36)
    private let holds = Atomic(0)

    /// Touched on the hub's loop only; nil when the connection is closed.
    nonisolated(unsafe) var handler: ConnectionHandler?

    init(id: UInt64, remoteAddress: String, hub: LoopHub) {
        self.id = id
        self.remoteAddress = remoteAddress
        socketAddress = ClientAddress(remoteAddress)
        self.hub = hub
    }

    /// The identity of the connection, as of `session.authenticate`.
    public var caller: Caller { state.withLock { $0.caller } }

    /// The client that limits count for `caller` here: a user, wherever the connections come from, else the address:
    /// that of `session.forward` before that of the socket.
    public func client(speakingAs caller: Caller) -> String {
        ClientAccount.name(caller, state.withLock { $0.forwarding }?.from?.client ?? socketAddress)
    }

    /// Whether the connection has closed.
    public var isClosed: Bool { hasClosed.load(ordering: .relaxed) }

    /// Sets whether later requests of the connection wait for an earlier one. While they do, its reads do not count as
    /// reads that wait for a thread.
    public func setTurnHeld(_ isHeld: Bool) { holdsTurn.store(isHeld, ordering: .relaxed) }

    var isTurnHeld: Bool { holdsTurn.load(ordering: .relaxed) }

    /// Whether it speaks for many clients, each of which a call names itself (`session.forward` without `from`).
    public var forwardsForMany: Bool { state.withLock { $0.forwarding.map { $0.from == nil } ?? false } }

    /// The address of the client that it speaks for; nil: for many.
    var clientAddress: ClientAddress? {
        guard let forwarding = state.withLock({ $0.forwarding }) else { return socketAddress }
        return forwarding.from?.client
    }

    /// The address for logs.
    var shownAddress: String { state.withLock { $0.forwarding }?.from?.text ?? remoteAddress }

    /// On the loop: from now on it speaks for clients of other addresses, and is not closed when idle.
    func forward(_ forwarding: Forwarding) {
        let forwarded = state.withLock { state in
            defer { state.forwarding = forwarding }
            return state.forwarding != nil
        }
        if !forwarded { beginHold() }
    }

    // MARK: Notifications

    /// Sends a notification `{"subscription": …, <members>}`; `members` are the further members of its params as JSON
    /// text without braces (`"version":1,"events":[…]`), written once for all listeners that get the same.
    ///
    /// False when the peer is behind: it has not taken `unsentNotificationBytesMax` yet, or `members` are shared and
    /// the process has no memory for them; nothing was sent. Bring it up to date when `onDrain` calls. Also false after
    /// the connection closed. One that is larger than the limit is sent when nothing else is on its way.
    public func notify(_ method: String, subscription: String, members: EncodedJSON) -> Bool {
        let notification = OutgoingNotification(method: method, subscription: subscription, members: members)
        let count = notification.byteCount
        let before = unsent.wrappingAdd(count, ordering: .relaxed).oldValue
        guard before == 0 || fits(notification, beside: before), !isClosed else {
            unsent.wrappingSubtract(count, ordering: .relaxed)
            refused.max(count, ordering: .relaxed)
            return false
        }
        if let shared = members.shared {
            guard shared.isCharged(to: hub.server.budget) else {
                unsent.wrappingSubtract(count, ordering: .relaxed)
                noteMissingMemory(shared)
                return false
            }
            unsentShared.wrappingAdd(shared.count, ordering: .relaxed)
        }
        hub.post(.notification(self, notification))
        return true
    }

    /// What peers have not taken takes no more than the process may hold; one notification each may always be there.
    private func fits(_ notification: OutgoingNotification, beside before: Int) -> Bool {
        let count = notification.byteCount
        return before + count <= hub.server.limits.unsentNotificationBytesMax
            && (notification.members.shared != nil || count <= hub.server.budget.freeBytes)
    }

    private func noteMissingMemory(_ shared: SharedBytes) {
        state.withLock { state in
            if case .awaited = state.eventMemory { return }
            state.eventMemory = .wanted(count: shared.count, event: shared.number)
        }
    }

    /// Calls once, on the event loop, as soon as the peer has taken enough for `notify` to return true and, where it
    /// lacked that, the process has memory again; never when the connection closes first.
    public func onDrain(_ drained: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.drainWatches.append(drained)
            awaitsDrain.store(true, ordering: .relaxed)
        }
        // The socket may have drained just before: then nothing else would call.
        hub.post(.run(self) { _ in })
    }

    // MARK: Life

    /// Calls once, on the event loop, when the connection has closed (at once if it has already).
    @discardableResult
    public func onClose(_ closed: @escaping @Sendable () -> Void) -> RPCWatch {
        let watch: UInt64? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.nextWatch += 1
            state.closeWatches[state.nextWatch] = closed
            return state.nextWatch
        }
        guard let watch else {
            hub.execute(closed)
            return RPCWatch {}
        }
        return RPCWatch { [weak self] in self?.state.withLock { _ = $0.closeWatches.removeValue(forKey: watch) } }
    }

    /// While there are holds, a connection without traffic is not closed: one for each listener, follower or
    /// onDisconnect entry.
    public func beginHold() { holds.wrappingAdd(1, ordering: .relaxed) }
    /// Ends what `beginHold` began.
    public func endHold() { holds.wrappingSubtract(1, ordering: .relaxed) }

    /// Ends the connection after the responses that are there are sent.
    public func close() { hub.post(.run(self) { $0.finishAndClose() }) }

    // MARK: For the server

    func openSubscription(by sequence: UInt64) -> String {
        let number = nextSubscription.wrappingAdd(1, ordering: .relaxed).oldValue
        let subscription = "\(subscriptionMark)-\(number)"
        hub.post(.opened(self, subscription: subscription, by: sequence))
        return subscription
    }

    func respond(_ ticket: RequestTicket, _ response: [UInt8]?, isError: Bool) {
        // On the loop, while it hands on lines, the response needs no mailbox, where it would not hold up the requests
        // behind it; but it must not overtake what was posted before it (a listener sees its own write before the
        // response of that write).
        if hub.loop.inEventLoop, hub.hasDelivered(to: self), let handler, handler.isHandingOn {
            handler.responded(ticket, response, isError: isError)
        } else {
            hub.post(.response(self, ticket, response, isError: isError))
        }
    }

    func outputWasPosted() { postedOutput.wrappingAdd(1, ordering: .releasing) }

    func outputWasTaken() { postedOutput.wrappingSubtract(1, ordering: .relaxed) }

    var hasPostedOutput: Bool { postedOutput.load(ordering: .acquiring) > 0 }

    var hasHolds: Bool { holds.load(ordering: .relaxed) > 0 }

    var unsentBytes: Int { unsent.load(ordering: .relaxed) }

    func addUnsent(_ count: Int) { unsent.wrappingAdd(count, ordering: .relaxed) }

    /// - Parameter shared: how many of the bytes other connections share.
    func subtractUnsent(_ count: Int, shared: Int) {
        unsent.wrappingSubtract(count, ordering: .relaxed)
        if shared > 0 { unsentShared.wrappingSubtract(shared, ordering: .relaxed) }
    }

    /// Whether something is unsent that other connections share.
    var holdsSharedEvents: Bool { unsentShared.load(ordering: .relaxed) > 0 }

    /// What is unsent without what other connections share, which the budget counts once.
    var unsentOwnBytes: Int { max(0, unsentBytes - unsentShared.load(ordering: .relaxed)) }

    /// Returns the callbacks that are due: what was refused fits now, or everything is taken.
    func takeDrainWatches() -> [@Sendable () -> Void] {
        guard awaitsDrain.load(ordering: .relaxed) else { return [] }
        let (waiting, limit) = (unsentBytes, hub.server.limits.unsentNotificationBytesMax)
        let missing = refused.load(ordering: .relaxed)
        guard
            waiting == 0 || waiting <= limit / 2 && waiting + missing <= limit && missing <= hub.server.budget.freeBytes
        else { return [] }
        let (due, wanted) = state.withLock { state -> ([@Sendable () -> Void], (count: Int, event: UInt64)?) in
            guard !state.drainWatches.isEmpty else { return ([], nil) }
            switch state.eventMemory {
            case .awaited: return ([], nil)
            case .wanted(let count, let event):
                state.eventMemory = .awaited
                return ([], (count, event))
            case .none: break
            }
            refused.store(0, ordering: .relaxed)
            awaitsDrain.store(false, ordering: .relaxed)
            defer { state.drainWatches = [] }
            return (state.drainWatches, nil)
        }
        if let wanted { awaitMemory(for: wanted.count, of: wanted.event) }
        return due
    }

    private func awaitMemory(for count: Int, of event: UInt64) {
        hub.server.budget.waitForEventMemory(id, for: count, of: event) { [weak self] in
            guard let self else { return }
            state.withLock { $0.eventMemory = .none }
            hub.post(.run(self) { _ in })
        }
    }

    /// On the loop, once. Returns the callbacks of the watches.
    func markClosed() -> [@Sendable () -> Void] {
        handler = nil
        hub.server.budget.stopWaitingForEventMemory(id)
        return state.withLock { state in
            hasClosed.store(true, ordering: .relaxed)
            state.isClosed = true
            defer {
                state.closeWatches = [:]
                state.drainWatches = []
                state.identityWatches.removeAll()
            }
            return state.closeWatches.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}

// MARK: - Identity

extension RPCConnection {
    func watchIdentity(
        _ identity: IdentityWatches.Identity,
        _ change: @escaping @Sendable (RPCIdentityChange, RPCIdentityWork) -> Void
    ) -> RPCWatch {
        beginHold()
        let (key, isNext) = state.withLock { state in
            let before = state.identityWatches.nextEnd
            let key = state.identityWatches.add(identity, change)
            return (key, state.identityWatches.nextEnd != before)
        }
        if isNext { hub.post(.run(self) { $0.scheduleExpiry() }) }
        // It may have ended before the watch was there.
        if case .user(let user) = identity.caller, hub.server.authenticator.hasEnded(user) {
            hub.post(.run(self) { $0.endIdentities() })
        }
        return RPCWatch { [weak self] in self?.endIdentityWatch(key) }
    }

    private func endIdentityWatch(_ key: UInt64) {
        let existed = state.withLock { $0.identityWatches.remove(key) }
        if existed { endHold() }
    }

    /// The connection now speaks for `caller` (`session.authenticate`), or for none (`session.end`).
    ///
    /// - Returns: whether that leaves work to do; its end is posted (`identityWorkIsDone`).
    func setCaller(_ caller: Caller, isEnd: Bool) -> Bool {
        let changes = state.withLock { state in
            state.caller = caller
            return state.identityWatches.callerChanged(to: caller, isEnd: isEnd)
        }
        guard !changes.isEmpty else { return false }
        let work = RPCIdentityWork { [self] in hub.post(.run(self) { $0.identityWorkIsDone() }) }
        for (change, what) in changes { change(what, work) }
        return true
    }

    /// Ends the watches whose token has ended; returns when the next one does.
    func expireIdentities(now: Int64) -> Int64? {
        let (expired, next) = state.withLock { state in
            let expired = state.identityWatches.takeExpired(now: now)
            return (expired, state.identityWatches.nextEnd)
        }
        end(expired, .expired)
        return next
    }

    /// Ends the watches whose identity has ended before its token.
    func endIdentities() {
        let authenticator = hub.server.authenticator
        end(state.withLock { $0.identityWatches.takeEnded { authenticator.hasEnded($0) } }, .revoked)
    }

    private func end(_ changes: [IdentityWatches.Change], _ end: RPCIdentityChange) {
        for change in changes {
            endHold()
            // Each watch ends once.
            change(end, RPCIdentityWork {})
        }
    }
}

extension Caller {
    var expiresAt: Int64? { if case .user(let user) = self { user.expiresAt } else { nil } }

    /// The caller that the handler of a method sees: for a service that may call it, the administrator.
    func seen(by method: String) -> Caller {
        if case .service(let service) = self, service.methods.contains(method) { .administrator } else { self }
    }

    /// The result of `session.authenticate`.
    var authenticated: JSONValue {
        [
            "uid": uid.map { .string($0) } ?? .null, "admin": .bool(isAdministrator),
            "expiresAt": expiresAt.map { .number(Double($0)) } ?? .null,
        ]
    }

    func isSamePerson(as other: Caller) -> Bool {
        switch (self, other) {
        case (.user(let one), .user(let two)): one.uid == two.uid
        case (.administrator, .administrator), (.nobody, .nobody): true
        case (.service(let one), .service(let two)): one == two
        case (.variable(let one), .variable(let two)): one == two
        default: false
        }
    }
}

/// A callback that can be taken back.
public final class RPCWatch: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    /// Ends the callbacks. After a call on the connection's event loop no callback starts; after a call from another
    /// thread one may still be running.
    public func cancel() { end() }
}
