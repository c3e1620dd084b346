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
        var identityWatches: [UInt64: IdentityWatch] = [:]
    }

    struct IdentityWatch: Sendable {
        var caller: Caller
        var isCallCredential: Bool
        var change: @Sendable (RPCIdentityChange) -> Void
    }

    public let id: UInt64
    public let remoteAddress: String
    /// The same as limits count it.
    public let clientAddress: ClientAddress
    let hub: LoopHub
    private let state = Mutex(State())
    /// Bytes on their way to the peer: posted, queued, or given to the socket and not yet taken.
    private let unsent = Atomic(0)
    /// The largest notification that was refused since the peer was last told to have drained.
    private let refused = Atomic(0)
    private let hasClosed = Atomic(false)
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
        clientAddress = ClientAddress(remoteAddress)
        self.hub = hub
    }

    /// The identity of the connection, as of `session.authenticate`.
    public var caller: Caller { state.withLock { $0.caller } }

    public var isClosed: Bool { hasClosed.load(ordering: .relaxed) }

    // MARK: Notifications

    /// Sends a notification `{"subscription": …, <members>}`; `members` are the further members of its params as JSON
    /// text without braces (`"version":1,"events":[…]`), written once for all listeners that get the same.
    ///
    /// False when the peer is behind: it has not taken `unsentNotificationBytesMax` yet, and nothing was sent. Bring it
    /// up to date when `onDrain` calls. Also false after the connection closed. One that is larger than the limit is
    /// sent when nothing else is on its way.
    public func notify(_ method: String, subscription: String, members: EncodedJSON) -> Bool {
        let notification = OutgoingNotification(method: method, subscription: subscription, members: members)
        let count = notification.byteCount
        let before = unsent.wrappingAdd(count, ordering: .relaxed).oldValue
        guard before == 0 || before + count <= hub.server.limits.unsentNotificationBytesMax, !isClosed else {
            unsent.wrappingSubtract(count, ordering: .relaxed)
            refused.max(count, ordering: .relaxed)
            return false
        }
        hub.post(.notification(self, notification))
        return true
    }

    /// Calls once, on the event loop, as soon as the peer has taken enough for `notify` to answer true; never when the
    /// connection closes first.
    public func onDrain(_ drained: @escaping @Sendable () -> Void) {
        state.withLock { $0.drainWatches.append(drained) }
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
    public func endHold() { holds.wrappingSubtract(1, ordering: .relaxed) }

    /// Ends the connection after what has been answered is sent.
    public func close() { hub.post(.run(self) { $0.finishAndClose() }) }

    // MARK: For the server

    func openSubscription(by sequence: UInt64) -> String {
        let number = nextSubscription.wrappingAdd(1, ordering: .relaxed).oldValue
        let subscription = "\(subscriptionMark)-\(number)"
        hub.post(.opened(self, subscription: subscription, by: sequence))
        return subscription
    }

    func answer(_ ticket: RequestTicket, _ response: [UInt8]?, isError: Bool) {
        // On the loop, while it hands on lines, the answer needs no mailbox; but it must not overtake what was posted
        // before it (a listener sees its own write before the answer of that write).
        if hub.loop.inEventLoop, hub.isMailboxEmpty, let handler, handler.isReading {
            handler.answered(ticket, response, isError: isError)
        } else {
            hub.post(.answer(self, ticket, response, isError: isError))
        }
    }

    var hasHolds: Bool { holds.load(ordering: .relaxed) > 0 }

    var unsentBytes: Int { unsent.load(ordering: .relaxed) }

    func addUnsent(_ count: Int) { unsent.wrappingAdd(count, ordering: .relaxed) }

    func subtractUnsent(_ count: Int) { unsent.wrappingSubtract(count, ordering: .relaxed) }

    /// Whom to tell that there is room: for what was refused, or all there can be.
    func takeDrainWatches() -> [@Sendable () -> Void] {
        let (waiting, limit) = (unsentBytes, hub.server.limits.unsentNotificationBytesMax)
        guard waiting == 0 || waiting <= limit / 2 && waiting + refused.load(ordering: .relaxed) <= limit else {
            return []
        }
        return state.withLock { state in
            guard !state.drainWatches.isEmpty else { return [] }
            refused.store(0, ordering: .relaxed)
            defer { state.drainWatches = [] }
            return state.drainWatches
        }
    }

    /// On the loop, once. Returns whom to tell.
    func markClosed() -> [@Sendable () -> Void] {
        handler = nil
        return state.withLock { state in
            hasClosed.store(true, ordering: .relaxed)
            state.isClosed = true
            defer {
                state.closeWatches = [:]
                state.drainWatches = []
                state.identityWatches = [:]
            }
            return state.closeWatches.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}

// MARK: - Identity

extension RPCConnection {
    func watchIdentity(
        of caller: Caller, isCallCredential: Bool, _ change: @escaping @Sendable (RPCIdentityChange) -> Void
    ) -> RPCWatch {
        beginHold()
        let watch = IdentityWatch(caller: caller, isCallCredential: isCallCredential, change: change)
        let key = state.withLock { state in
            state.nextWatch += 1
            state.identityWatches[state.nextWatch] = watch
            return state.nextWatch
        }
        if caller.expiresAt != nil { hub.post(.run(self) { $0.scheduleExpiry() }) }
        return RPCWatch { [weak self] in self?.endIdentityWatch(key) }
    }

    private func endIdentityWatch(_ key: UInt64) {
        let existed = state.withLock { $0.identityWatches.removeValue(forKey: key) != nil }
        if existed { endHold() }
    }

    /// The connection now speaks for `caller` (`session.authenticate`), or for nobody (`session.end`).
    func setCaller(_ caller: Caller, isEnd: Bool) {
        let changes = state.withLock { state in
            state.caller = caller
            var changes: [(@Sendable (RPCIdentityChange) -> Void, RPCIdentityChange)] = []
            for (key, var watch) in state.identityWatches.sorted(by: { $0.key < $1.key }) {
                if isEnd && watch.isCallCredential { continue }
                let isSame = caller.isSamePerson(as: watch.caller)
                changes.append((watch.change, isSame ? .extended(caller) : .replaced(caller)))
                watch.caller = caller
                state.identityWatches[key] = watch
            }
            return changes
        }
        for (change, what) in changes { change(what) }
    }

    /// Ends the watches whose token has ended; returns when the next one does.
    func expireIdentities(now: Int64) -> Int64? {
        let (expired, next) = state.withLock { state in
            var expired: [@Sendable (RPCIdentityChange) -> Void] = []
            var next: Int64?
            for (key, watch) in state.identityWatches.sorted(by: { $0.key < $1.key }) {
                guard let end = watch.caller.expiresAt else { continue }
                if end <= now {
                    expired.append(watch.change)
                    state.identityWatches[key] = nil
                } else {
                    next = min(next ?? end, end)
                }
            }
            return (expired, next)
        }
        for change in expired {
            endHold()
            change(.expired)
        }
        return next
    }
}

extension Caller {
    var expiresAt: Int64? { if case .user(let user) = self { user.expiresAt } else { nil } }

    func isSamePerson(as other: Caller) -> Bool {
        switch (self, other) {
        case (.user(let one), .user(let two)): one.uid == two.uid
        case (.administrator, .administrator), (.nobody, .nobody): true
        default: false
        }
    }
}

/// A callback that can be taken back.
public final class RPCWatch: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    /// No callback starts after this returns on the connection's event loop; elsewhere one may just be running.
    public func cancel() { end() }
}
