/// Which clients get nothing more because they have not taken what they have: a value, which gets the time.
///
/// It counts the bytes that connections were given and their peers have not taken, for each client (`ClientAddress`)
/// and for all of them. A client with more than its part is stopped: the connections to services are not read for it
/// until it has taken a quarter. When there are too many bytes in all, clients with more than an equal share are
/// stopped, so that those go on that take what they get. A client that is stopped for too long loses its largest
/// connections: a peer that never reads stops no other one of its address for ever.
struct UntakenShares: Sendable {
    struct Limits: Sendable, Hashable {
        /// Bytes of all clients.
        var bytesMax: Int
        /// Bytes of one client.
        var perClientMax: Int
        /// Milliseconds for which a client may be stopped.
        var stoppedMsMax: Int
    }

    /// A connection: the number of its event loop, and its own on that loop.
    struct Holder: Sendable, Hashable {
        var loop: Int
        var number: Int
    }

    private struct Client {
        var bytes = 0
        var holders: [Holder: Int] = [:]
        /// In milliseconds.
        var stoppedSince: Int64?

        mutating func set(_ holder: Holder, _ bytes: Int) -> Int {
            let change = bytes - (holders[holder] ?? 0)
            holders[holder] = bytes > 0 ? bytes : nil
            self.bytes += change
            return change
        }
    }

    private let limits: Limits
    private var clients: [String: Client] = [:]
    /// What all clients have not taken.
    private(set) var bytes = 0
    /// Clients that are stopped.
    private(set) var stoppedCount = 0
    /// Whether there are too many bytes in all.
    private var isFull = false

    init(_ limits: Limits) { self.limits = limits }

    /// Whether the connections to services are not read for this client.
    func isStopped(_ client: String) -> Bool { clients[client]?.stoppedSince != nil }

    /// A connection has so many bytes that its peer has not taken.
    ///
    /// - Parameter now: in milliseconds, of a clock that never goes back.
    /// - Returns: whether a client was stopped, or may go on.
    mutating func changed(_ holder: Holder, of client: String, to bytes: Int, at now: Int64) -> Bool {
        self.bytes += clients[client, default: Client()].set(holder, bytes)
        let wasFull = isFull
        isFull = self.bytes > (isFull ? Self.low(limits.bytesMax) : limits.bytesMax)
        guard isFull == wasFull else { return review(at: now) }
        return review(client, at: now)
    }

    /// Looks at all clients. Returns whether one was stopped, or may go on.
    mutating func review(at now: Int64) -> Bool {
        var hasChanged = false
        for client in Array(clients.keys) where review(client, at: now) { hasChanged = true }
        return hasChanged
    }

    private mutating func review(_ name: String, at now: Int64) -> Bool {
        guard let client = clients[name] else { return false }
        let wasStopped = client.stoppedSince != nil
        let own = wasStopped ? Self.low(limits.perClientMax) : limits.perClientMax
        let isStopped = client.bytes > min(own, share)
        if isStopped != wasStopped {
            stoppedCount += isStopped ? 1 : -1
            clients[name]?.stoppedSince = isStopped ? now : nil
        }
        if client.holders.isEmpty { clients[name] = nil }
        return isStopped != wasStopped
    }

    /// What each client may have.
    private var share: Int { isFull ? limits.bytesMax / max(1, clients.count) : .max }

    /// The connections that are to be closed: the largest ones of clients that are stopped for too long.
    func overdue(at now: Int64) -> [Holder] {
        guard stoppedCount > 0 else { return [] }
        var overdue: [Holder] = []
        for client in clients.values {
            guard let since = client.stoppedSince, now - since >= Int64(limits.stoppedMsMax) else { continue }
            var rest = client.bytes
            for (holder, bytes) in client.holders.sorted(by: { $0.value > $1.value }) {
                guard rest > min(Self.low(limits.perClientMax), share) else { break }
                overdue.append(holder)
                rest -= bytes
            }
        }
        return overdue
    }

    /// From where on it goes on again.
    private static func low(_ bytes: Int) -> Int { bytes / 4 * 3 }
}
