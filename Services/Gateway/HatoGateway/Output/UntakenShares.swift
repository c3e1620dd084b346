import HatoRPC

/// Which clients get nothing more because they have not taken what they have: a value, which gets the time.
///
/// It counts the bytes that connections were given and their peers have not taken, for each client (`ClientAddress`),
/// for the site of an IPv6 address (`SiteShare`), and for all. A client or site with more than its part is stopped: the
/// connections to services are not read for it until it has taken a quarter. When there are too many bytes in all, the
/// customers with most are stopped: those above the level to which all of them would have to come down to leave three
/// quarters. Ones with little are no reason for others to be stopped.
///
/// Of what is stopped, connections are closed whose peers do not take what they have (`UntakenProgress`), the largest
/// first, until three quarters are left: neither peers that never read nor those that read little of much stop the
/// others of their address for long, and those that read steadily keep their connections.
struct UntakenShares: Sendable {
    struct Limits: Sendable, Hashable {
        /// Bytes of all clients.
        var bytesMax: Int
        /// Bytes of one client.
        var perClientMax: Int
        /// When a connection does not take what it has.
        var progress: UntakenProgress.Limits
    }

    /// A connection: the number of its event loop, and its own on that loop.
    struct Holder: Sendable, Hashable {
        var loop: Int
        var number: Int
    }

    private struct Connection {
        var client: ClientAddress
        var bytes: Int
        var progress = UntakenProgress()
    }

    /// What a client or a site has not taken.
    private struct Account {
        /// A site has another bound, and stands for its clients when there are too many bytes in all.
        let isSite: Bool
        /// Whether it counts when there are too many bytes in all: a client whose site counts does not.
        let isCustomer: Bool
        var bytes = 0
        /// Whether it has more than its own part, and has not taken a quarter since.
        var hasTooMuch = false
        /// In milliseconds.
        var stoppedSince: Int64?
    }

    private let limits: Limits
    private let perSiteMax: Int
    private var connections: [Holder: Connection] = [:]
    /// By names: those of sites are other ones than those of clients.
    private var accounts: [String: Account] = [:]
    /// What all clients have not taken.
    private(set) var bytes = 0
    /// Clients and sites that are stopped.
    private(set) var stoppedCount = 0
    /// Whether there are too many bytes in all.
    private var isFull = false
    /// What each customer may have, as of the last look at all of them.
    private var level = Int.max

    init(_ limits: Limits) {
        self.limits = limits
        perSiteMax = SiteShare.max(limits.perClientMax, of: limits.bytesMax)
    }

    /// Whether the connections to services are not read for this client.
    func isStopped(_ client: ClientAddress) -> Bool { stoppedSince(client) != nil }

    private func stoppedSince(_ client: ClientAddress) -> Int64? {
        let own = accounts[client.network]?.stoppedSince
        guard let site = client.ownSite.flatMap({ accounts[$0]?.stoppedSince }) else { return own }
        return min(own ?? site, site)
    }

    // MARK: Bytes

    /// A connection has so many bytes that its peer has not taken.
    ///
    /// - Parameters:
    ///   - client: another one than before only when the connection had none.
    ///   - now: in milliseconds, of a clock that never goes back.
    /// - Returns: whether a client or a site was stopped, or may go on.
    mutating func changed(_ holder: Holder, of client: ClientAddress, to bytes: Int, at now: Int64) -> Bool {
        add(bytes - (connections[holder]?.bytes ?? 0), to: client)
        if bytes > 0 {
            connections[holder, default: Connection(client: client, bytes: 0)].bytes = bytes
        } else {
            connections[holder] = nil
        }
        let wasFull = isFull
        isFull = self.bytes > (isFull ? Self.low(limits.bytesMax) : limits.bytesMax)
        guard isFull == wasFull else { return review(at: now) }
        var hasChanged = review(client.network, at: now)
        if let site = client.ownSite, review(site, at: now) { hasChanged = true }
        // The level is an old one.
        if isFull, stoppedCount == 0 { hasChanged = review(at: now) || hasChanged }
        return hasChanged
    }

    private mutating func add(_ change: Int, to client: ClientAddress) {
        bytes += change
        let site = client.ownSite
        accounts[client.network, default: Account(isSite: false, isCustomer: site == nil)].bytes += change
        if let site { accounts[site, default: Account(isSite: true, isCustomer: true)].bytes += change }
    }

    /// The peer of a connection has taken so many bytes of all that it was given. Nothing is to be reported for
    /// clients that are not stopped.
    ///
    /// - Parameters:
    ///   - taken: counted from any number; only differences matter.
    ///   - waiting: bytes that it has still to take; nil: all that is held for it.
    mutating func looked(at holder: Holder, taken: Int, waiting: Int? = nil, at now: Int64) {
        guard let connection = connections[holder], let since = stoppedSince(connection.client) else { return }
        let look = UntakenProgress.Look(taken: taken, held: waiting ?? connection.bytes, time: now)
        connections[holder]?.progress.looked(look, stoppedSince: since, limits.progress)
    }

    // MARK: What is stopped

    /// Looks at all clients and sites. Returns whether one was stopped, or may go on.
    mutating func review(at now: Int64) -> Bool {
        level = isFull ? fairLevel() : .max
        var hasChanged = false
        for name in Array(accounts.keys) where review(name, at: now) { hasChanged = true }
        return hasChanged
    }

    private mutating func review(_ name: String, at now: Int64) -> Bool {
        guard var account = accounts[name] else { return false }
        let wasStopped = account.stoppedSince != nil
        let own = max(of: account)
        account.hasTooMuch = account.bytes > (account.hasTooMuch ? Self.low(own) : own)
        let isStopped = account.hasTooMuch || isFull && account.isCustomer && account.bytes > level
        if isStopped != wasStopped {
            stoppedCount += isStopped ? 1 : -1
            account.stoppedSince = isStopped ? now : nil
        }
        accounts[name] = account.bytes > 0 ? account : nil
        return isStopped != wasStopped
    }

    private func max(of account: Account) -> Int { account.isSite ? perSiteMax : limits.perClientMax }

    /// The bytes that each customer would have if those with more came down to it, and three quarters were left in all.
    private func fairLevel() -> Int {
        let sizes = accounts.values.filter(\.isCustomer).map(\.bytes).sorted()
        var rest = Self.low(limits.bytesMax)
        for (index, size) in sizes.enumerated() {
            let share = rest / (sizes.count - index)
            guard size <= share else { return share }
            rest -= size
        }
        return .max
    }

    // MARK: What is closed

    /// The connections that are to be closed: of clients and sites that are stopped those that do not take what they
    /// have, the largest first, as far as it needs. Where there are only too many in all, customers with most come
    /// first.
    func overdue() -> [Holder] {
        guard stoppedCount > 0 else { return [] }
        let unread = connections.filter { isOverdue($0.value) }
        guard !unread.isEmpty else { return [] }
        var (left, rest) = (accounts.mapValues(\.bytes), bytes)
        var overdue: [Holder] = []
        func close(_ holder: Holder, _ connection: Connection) {
            overdue.append(holder)
            rest -= connection.bytes
            left[connection.client.network]? -= connection.bytes
            if let site = connection.client.ownSite { left[site]? -= connection.bytes }
        }
        func hasTooMuch(_ name: String?) -> Bool {
            guard let name, let account = accounts[name], account.hasTooMuch else { return false }
            return left[name, default: 0] > Self.low(max(of: account))
        }
        var others: [(holder: Holder, connection: Connection, ofCustomer: Int)] = []
        for (holder, connection) in unread.sorted(by: { $0.value.bytes > $1.value.bytes }) {
            if hasTooMuch(connection.client.network) || hasTooMuch(connection.client.ownSite) {
                close(holder, connection)
            } else {
                others.append((holder, connection, left[connection.client.site] ?? 0))
            }
        }
        guard isFull else { return overdue }
        // With as much, those of one customer come in their order.
        others.sort { ($0.ofCustomer, $0.connection.client.site) > ($1.ofCustomer, $1.connection.client.site) }
        for (holder, connection, _) in others where rest > Self.low(limits.bytesMax) {
            if left[connection.client.site, default: 0] > level { close(holder, connection) }
        }
        return overdue
    }

    private func isOverdue(_ connection: Connection) -> Bool {
        stoppedSince(connection.client).map { connection.progress.isOverdue(stoppedSince: $0) } ?? false
    }

    /// From where on it goes on again.
    private static func low(_ bytes: Int) -> Int { bytes / 4 * 3 }
}
