/// Decides which unfinished lines may grow, and which of those that wait goes on next. Pure: events in, decisions out.
///
/// A line that grows beyond what one read brings claims the buffer it will lie in before it is read. Three rules
/// decide, so that a client is held up by what it holds itself and not by others:
///
/// - As much stays free as the client then holds. The more a client has, the earlier it waits, and a client that has
///   nothing yet finds something.
/// - A share: a client may hold `clientMax`, and beyond that one of its lines may grow at a time.
/// - An end: where nothing fits, one line in all may grow, of the client that holds the least. Otherwise a memory full
///   of unfinished lines would stay full. That line has to come fast (`LineStall`), and what it takes is not taken from
///   others.
///
/// The exceptions of the share and of the end are not made while complete lines are still being read elsewhere
/// (`chargeBegan`), of that client or of all: they come to their end by themselves, and what they hold is free then.
///
/// Lines of medium length find some memory more, which longer ones leave to them: where nothing fits, a few of them may
/// grow all the same (`MediumLines`), one of each client. So they are not held up by long lines.
///
/// Claims that wait go on in the order in which they came, as far as the rules allow. What a client holds is asked when
/// a decision depends on it: an entry whose key may be too low is looked at again when it comes first, so each event
/// costs the logarithm of the number of claims, however many wait.
struct LineClaims {
    /// What is held when a decision is made, in bytes.
    struct Memory {
        /// By all.
        var used: Int
        var usedByClient: (String) -> Int
    }

    /// What becomes of a claim that waits.
    enum Decision: Hashable {
        case grant(Grant)
        /// The line of this connection is to be dropped: others need the memory that it waits in.
        case refuse(UInt64)
    }

    /// A claim that is granted; the caller counts `growth` for the client before it asks again.
    struct Grant: Hashable {
        var connection: UInt64
        var client: String
        var growth: Int
    }

    private struct Claim {
        var client: String
        var granted = 0
        /// What is waited for; nil: nothing.
        var wanted: Int?
        /// Its place among those that wait.
        var turn: UInt64 = 0

        var growth: Int { (wanted ?? granted) - granted }
    }

    /// An order by bytes, and by turn among equal ones.
    private struct Rank: Comparable {
        var bytes: Int
        var turn: UInt64

        static func < (left: Rank, right: Rank) -> Bool { (left.bytes, left.turn) < (right.bytes, right.turn) }
    }

    private struct Client {
        /// The claims of the client that wait.
        var byGrowth = IndexedHeap<UInt64, Rank>()
        var byTurn = IndexedHeap<UInt64, UInt64>()
        /// The connection whose line may grow beyond the share.
        var exempt: UInt64?
        /// Complete lines of the client that are read elsewhere.
        var charges = 0

        var isUnused: Bool { byTurn.isEmpty && exempt == nil && charges == 0 }
    }

    private let linesMax: Int
    private let clientMax: Int
    private var mediums: MediumLines
    private var claims: [UInt64: Claim] = [:]
    private var clients: [String: Client] = [:]
    /// Clients whose next claim waits for free memory: by what that claim needs, and by what the client holds. Keys are
    /// too low rather than too high.
    private var byNeed = IndexedHeap<String, Rank>()
    private var byHeld = IndexedHeap<String, Rank>()
    /// The connection whose line may grow although nothing fits.
    private var exempt: UInt64?
    private var charges = 0
    private var lastTurn: UInt64 = 0
    private(set) var waitingCount = 0

    /// - Parameters:
    ///   - linesMax: bytes that may be held for a line to grow.
    ///   - reserved: bytes beyond, for lines whose buffers have no more than a capacity.
    init(linesMax: Int, clientMax: Int, reserved: Int = 0, forCapacity capacityMax: Int = 0) {
        self.linesMax = linesMax
        self.clientMax = clientMax
        mediums = MediumLines(capacity: capacityMax, countMax: capacityMax > 0 ? reserved / capacityMax : 0)
    }

    // MARK: Events

    /// A line is to lie in a buffer of `capacity` bytes. Returns whether it has so much already; else it waits for
    /// `next`.
    mutating func claimed(_ capacity: Int, by connection: UInt64, of client: String) -> Bool {
        var claim = claims[connection] ?? Claim(client: client)
        guard capacity > claim.granted else { return true }
        // It waits already, at its place.
        if let wanted = claim.wanted, wanted >= capacity { return false }
        if claim.wanted == nil {
            lastTurn += 1
            claim.turn = lastTurn
            waitingCount += 1
        }
        claim.wanted = capacity
        claims[connection] = claim
        clients[client, default: Client()].byGrowth.insert(connection, Rank(bytes: claim.growth, turn: claim.turn))
        clients[client]?.byTurn.insert(connection, claim.turn)
        mediums.claimed(capacity, by: connection, of: client, turn: claim.turn)
        heldChanged(client)
        return false
    }

    /// The line is complete, or is dropped. Returns what was granted to it.
    mutating func ended(_ connection: UInt64, isComplete: Bool = true) -> Int {
        guard let claim = claims.removeValue(forKey: connection) else { return 0 }
        if claim.wanted != nil { removeWaiting(connection, of: claim.client) }
        if exempt == connection { exempt = nil }
        mediums.ended(connection, of: claim.client, isMedium: isComplete && mediums.isMedium(claim.granted))
        if clients[claim.client]?.exempt == connection { clients[claim.client]?.exempt = nil }
        heldChanged(claim.client)
        return claim.granted
    }

    /// The line, one of medium length that goes on although nothing fits, comes slowly.
    mutating func isOverdue(_ connection: UInt64) { mediums.isOverdue(connection) }

    /// The line is complete, and is still to be taken.
    mutating func completed(_ connection: UInt64) { mediums.completed(connection) }

    /// A complete line of this client is read elsewhere.
    mutating func chargeBegan(of client: String) {
        charges += 1
        clients[client, default: Client()].charges += 1
    }

    mutating func chargeEnded(of client: String) {
        charges -= 1
        clients[client]?.charges -= 1
        heldChanged(client)
    }

    /// The client may hold less: its next claim is looked at again.
    mutating func heldChanged(_ name: String) {
        mediums.lookAgain(name)
        byNeed.remove(name)
        byHeld.remove(name)
        guard let client = clients[name] else { return }
        if client.isUnused { clients[name] = nil }
        guard let first = client.byTurn.first else { return }
        byNeed.insert(name, Rank(bytes: .min, turn: first.priority))
        byHeld.insert(name, Rank(bytes: .min, turn: first.priority))
    }

    private mutating func removeWaiting(_ connection: UInt64, of client: String) {
        clients[client]?.byGrowth.remove(connection)
        clients[client]?.byTurn.remove(connection)
        waitingCount -= 1
    }

    // MARK: Decisions

    /// What becomes of the next claim; nil: all must wait.
    mutating func next(_ memory: Memory) -> Decision? {
        if let exempt, let claim = claims[exempt], claim.wanted != nil { return grant(exempt, claim) }
        let free = linesMax - memory.used + exemptBytes
        while let (name, rank) = byNeed.first, rank.bytes <= free {
            let held = memory.usedByClient(name)
            guard let connection = nextClaim(of: name, held), let claim = claims[connection] else {
                // It waits for what it holds itself.
                byNeed.remove(name)
                byHeld.remove(name)
                continue
            }
            // As much stays free as the client then holds.
            let need = Rank(bytes: held + 2 * claim.growth, turn: claim.turn)
            guard need == rank else {
                byNeed.insert(name, need)
                if let first = clients[name]?.byTurn.first {
                    byHeld.insert(name, Rank(bytes: held, turn: first.priority))
                }
                continue
            }
            if held + claim.growth > clientMax { clients[name]?.exempt = connection }
            return grant(connection, claim)
        }
        let heldMax = clientMax - mediums.capacity
        switch mediums.next({ memory.usedByClient($0) <= heldMax }) {
        case .grow(let connection):
            guard var claim = claims[connection] else { break }
            // All that it may need: it does not wait again.
            claim.wanted = mediums.capacity
            return grant(connection, claim)
        case .refuse(let connection): return .refuse(connection)
        case nil: break
        }
        guard exempt == nil, charges == 0 else { return nil }
        while let (name, rank) = byHeld.first, let connection = clients[name]?.byTurn.first?.key {
            let held = Rank(bytes: memory.usedByClient(name), turn: rank.turn)
            guard held == rank, let claim = claims[connection] else {
                byHeld.insert(name, held)
                continue
            }
            exempt = connection
            return grant(connection, claim)
        }
        return nil
    }

    /// The claim of a client that goes on when it finds free memory: the smallest within the share, beyond it that of
    /// the exempt line, or the first of those that may become exempt.
    private func nextClaim(of name: String, _ held: Int) -> UInt64? {
        guard let client = clients[name], let least = client.byGrowth.first else { return nil }
        if held + least.priority.bytes <= clientMax { return least.key }
        if let exempt = client.exempt { return claims[exempt]?.wanted == nil ? nil : exempt }
        return client.charges == 0 ? client.byTurn.first?.key : nil
    }

    private mutating func grant(_ connection: UInt64, _ claim: Claim) -> Decision {
        let grant = Grant(connection: connection, client: claim.client, growth: claim.growth)
        removeWaiting(connection, of: claim.client)
        claims[connection]?.granted = claim.granted + claim.growth
        claims[connection]?.wanted = nil
        mediums.granted(claim.granted + claim.growth, to: connection, of: claim.client)
        heldChanged(claim.client)
        return .grant(grant)
    }

    /// The least free memory with which a claim goes on, as far as is known, when what the exempt line has does not
    /// count as free; nil: none waits for free memory.
    var leastNeed: Int? {
        guard let least = byNeed.first?.priority.bytes, least != .min else { return byNeed.first?.priority.bytes }
        return least - exemptBytes
    }

    /// What the line has that grows although nothing fits.
    private var exemptBytes: Int { exempt.flatMap { claims[$0]?.granted } ?? 0 }

    /// Why the line of this connection goes on although nothing fits; nil: it does not.
    func exemption(of connection: UInt64) -> LineExemption? {
        exempt == connection ? .one : mediums.isExempt(connection) ? .medium : nil
    }

    /// Whether something of this client waits.
    func isWaiting(_ name: String) -> Bool { clients[name]?.byTurn.isEmpty == false }

    /// Whether another connection waits for what this one holds: one of the same client, or one of another client that
    /// finds no free memory.
    func isAwaited(_ connection: UInt64, of client: String) -> Bool {
        let own = clients[client]?.byTurn
        let isOwnWaiting = own?.contains(connection) ?? false
        if (own?.count ?? 0) > (isOwnWaiting ? 1 : 0) { return true }
        return byNeed.count > (byNeed.contains(client) ? 1 : 0)
    }
}

/// Why a line goes on although nothing fits.
enum LineExemption {
    /// It is the one in all.
    case one
    /// It is one of medium length.
    case medium
}
