/// Decides which connections a server has: a value, events in and decisions out.
///
/// - One client address (`ClientAddress`) has at most `perAddressMax` connections. Those that forward do not count: a
///   gateway has one for each of its clients. Those hold at most all slots but `newcomersMin`: clients of a gateway
///   cannot keep out the others.
/// - Connections that have not shown a credential hold at most `withoutCredentialMax` slots. Beyond, and where all
///   slots are taken, the one among them that is silent for the longest time is closed for a new one: a peer that
///   only holds connections open cannot keep out a client that shows a credential.
/// - Connections of one user beyond `perUserMax` stay among those without a credential. Where users hold all slots but
///   `newcomersMin`, the oldest connection of the user with the most is closed for a new one: few accounts cannot keep
///   others out, nor can peers that only connect close each other's connections before they have shown a credential.
///   Administrators' are not counted.
/// - A connection that is being closed holds its slot until it has closed. At most `evictionsMax` are being closed
///   beyond `connectionsMax`. Nothing is accepted while `acceptedMax` descriptors are open (`AcceptLimit`), so that
///   open files stay bounded however fast new connections come.
///
/// Each event costs O(1): connections without a credential form a list in order of their last activity.
struct ConnectionAdmission: Sendable {
    typealias ID = UInt64

    struct Limits: Sendable, Hashable {
        var connectionsMax: Int
        var withoutCredentialMax: Int
        var perAddressMax: Int
        var perUserMax: Int
        /// Where users hold all other slots, so many connections without a credential are not closed for new ones.
        /// Connections that forward leave so many slots.
        var newcomersMin: Int
        var evictionsMax = ConnectionAdmission.evictionsMax
        /// Accepted connections whose descriptors are open, whatever was decided on them (`AcceptLimit`).
        var acceptedMax: Int

        init(_ limits: RPCLimits) {
            let max = Swift.max(1, limits.connectionsMax)
            let percent = Swift.min(Swift.max(1, limits.connectionsWithoutCredentialPercentMax), 100)
            // Rounded up: few slots, too, leave one to a connection that has nothing to show yet.
            connectionsMax = max
            newcomersMin = max / 10
            // Those that are closed for others or refused, and those whose loop has not seen them yet.
            acceptedMax = max + Swift.min(2 * ConnectionAdmission.evictionsMax, Swift.max(4, max / 4))
            withoutCredentialMax = max - max / 100 * (100 - percent) - max % 100 * (100 - percent) / 100
            perAddressMax = limits.connectionsPerAddressMax
            perUserMax = limits.connectionsPerUserMax
        }

        /// Connections that forward.
        var forwardingMax: Int { Swift.max(1, connectionsMax - newcomersMin) }
    }

    enum Decision: Sendable, Hashable {
        case admit
        /// Admitted; this connection is to be closed.
        case admitClosing(ID)
        case refuse(Refusal)
    }

    enum Refusal: Sendable, Hashable {
        case tooMany
        case tooManyFromAddress
    }

    private struct Connection: Sendable {
        var address: ClientAddress
        /// Whether it counts among those of its address: it does not forward.
        var countsForAddress = true
        var state: State
        /// Neighbours in the list of those without a credential.
        var previous: ID?
        var next: ID?
    }

    private enum State: Sendable, Hashable {
        case withoutCredential
        /// Of this user; nil: of an administrator, a service, or one that forwards.
        case withCredential(String?)
        case closing
    }

    static let evictionsMax = 64

    private let limits: Limits
    private var connections: [ID: Connection] = [:]
    private var byAddress: [ClientAddress: Int] = [:]
    /// Those with a slot of their own.
    private var byUser = UserSlots()
    /// The ends of the list: the longest silent connection, and the one that was active last.
    private var oldest: ID?
    private var newest: ID?
    private(set) var withoutCredentialCount = 0
    private(set) var closingCount = 0
    private(set) var forwardingCount = 0

    init(_ limits: Limits) { self.limits = limits }

    /// All that have not closed.
    var count: Int { connections.count }

    /// A peer has connected.
    mutating func accepted(_ id: ID, from address: ClientAddress) -> Decision {
        guard byAddress[address, default: 0] < limits.perAddressMax else { return .refuse(.tooManyFromAddress) }
        let isFull = count - closingCount >= limits.connectionsMax
        guard isFull || withoutCredentialCount >= limits.withoutCredentialMax else {
            add(id, address)
            return .admit
        }
        guard closingCount < limits.evictionsMax, let victim = takeVictim() else { return .refuse(.tooMany) }
        connections[victim]?.state = .closing
        closingCount += 1
        add(id, address)
        return .admitClosing(victim)
    }

    private mutating func takeVictim() -> ID? {
        if withoutCredentialCount < max(1, limits.newcomersMin), let victim = byUser.victim {
            byUser.remove(victim.id, of: victim.user)
            return victim.id
        }
        guard let silent = oldest else { return nil }
        remove(silent)
        return silent
    }

    /// The connection has shown a valid credential of this user; nil: of an administrator.
    ///
    /// - Returns: whether it has a slot of its own now. If not, it may ask again.
    mutating func showedCredential(_ id: ID, of user: String?) -> Bool {
        guard connections[id]?.state == .withoutCredential else { return false }
        if let user {
            guard byUser.count(of: user) < limits.perUserMax else { return false }
            byUser.add(id, of: user)
        }
        remove(id)
        connections[id]?.state = .withCredential(user)
        return true
    }

    /// The connection speaks for clients of other addresses: from now on it counts neither for its address nor for a
    /// user, and is not closed for another.
    ///
    /// - Returns: false when too many do: then nothing has changed.
    mutating func forwards(_ id: ID) -> Bool {
        guard let connection = connections[id], connection.countsForAddress else { return true }
        if connection.state == .closing { return true }
        guard forwardingCount < limits.forwardingMax else { return false }
        switch connection.state {
        case .withoutCredential: remove(id)
        case .withCredential(let user): if let user { byUser.remove(id, of: user) }
        case .closing: break
        }
        forwardingCount += 1
        connections[id]?.state = .withCredential(nil)
        connections[id]?.countsForAddress = false
        Self.decrease(&byAddress[connection.address])
        return true
    }

    /// Its peer has sent something.
    mutating func wasActive(_ id: ID) {
        guard newest != id, connections[id]?.state == .withoutCredential else { return }
        remove(id)
        append(id)
    }

    /// The connection has closed, for whatever reason.
    mutating func closed(_ id: ID) {
        guard let connection = connections[id] else { return }
        switch connection.state {
        case .withoutCredential: remove(id)
        case .withCredential(let user): if let user { byUser.remove(id, of: user) }
        case .closing: closingCount -= 1
        }
        connections[id] = nil
        if connection.countsForAddress {
            Self.decrease(&byAddress[connection.address])
        } else {
            forwardingCount -= 1
        }
    }

    private static func decrease(_ count: inout Int?) {
        if let some = count { count = some > 1 ? some - 1 : nil }
    }

    // MARK: The list of those without a credential

    private mutating func add(_ id: ID, _ address: ClientAddress) {
        connections[id] = Connection(address: address, state: .withoutCredential)
        byAddress[address, default: 0] += 1
        append(id)
    }

    private mutating func append(_ id: ID) {
        connections[id]?.previous = newest
        connections[id]?.next = nil
        if let newest { connections[newest]?.next = id } else { oldest = id }
        newest = id
        withoutCredentialCount += 1
    }

    private mutating func remove(_ id: ID) {
        guard let connection = connections[id] else { return }
        if let previous = connection.previous {
            connections[previous]?.next = connection.next
        } else {
            oldest = connection.next
        }
        if let next = connection.next {
            connections[next]?.previous = connection.previous
        } else {
            newest = connection.previous
        }
        withoutCredentialCount -= 1
    }
}
