/// Decides which large reads of one size go on, and in which order. Pure: events in, decisions out.
///
/// Every read starts with a small reservation (`ProcessBudget`). One whose result outgrows it is dropped, waits
/// here, and begins again with a reservation of the next size. A reservation is open from its grant until the peer has
/// taken the result.
///
/// - At most `runningMax` large reads run at a time, so that readers stay free for small ones.
/// - Clients take turns; among those with open reservations, the one that holds the least is first. Of the others
///   the one is first whose peers kept reservations open for the least time lately, in seconds. The reads of one client
///   are granted in the order in which they came.
/// - What is held above `memoryMax` stays free of these reads, for small ones and for requests.
/// - The first reservation of a client needs free memory for itself, and leaves as much again for the next client
///   unless its peers took what they got within a second lately: however many clients do not take their results, one
///   that does finds memory. Each further one leaves as much free as the client then holds, and keeps the client within
///   `clientMax`.
/// - Where nothing fits, `beyondMax` clients without an open reservation get one beyond that: reads always make
///   progress. While a reservation is open, clients that must leave memory for the next one leave the last of these to
///   others. Of three and more, another one is for clients whose peers took their last result within a second: however
///   many new clients come at once, they wait for none of them.
/// - A batch has one reservation for all its entries. A further large read of it waits for its turn to run, not for
///   memory.
///
/// Each event costs the logarithm of the number of reads that wait.
struct ReadReservationQueue {
    /// A read that has outgrown its small reservation.
    struct Request: Sendable, Hashable {
        var id: UInt64
        var connection: UInt64
        var client: String
    }

    /// Why a reservation is no longer open.
    enum Outcome {
        /// The peer has taken the result.
        case taken
        /// The result needs a larger one, or there is none.
        case outgrown
        /// The connection has closed.
        case dropped
    }

    /// What is held when a decision is made, in bytes.
    struct Memory {
        /// By all.
        var used: Int
        var usedByClient: (String) -> Int
        /// Milliseconds since some fixed moment.
        var now: UInt64 = 0
    }

    private struct Client {
        /// Reads that wait, by their place.
        var waiting = IndexedHeap<UInt64, Int>()
        /// Those among them that wait for memory and not only to run.
        var waitingForMemory = 0
        /// Reservations that are granted and not taken.
        var open = 0
        var turn: UInt64 = 0
        var keeping = Keeping()
    }

    private struct Open {
        var client: String
        var isRunning: Bool
        var since: UInt64
    }

    /// For how long a client kept reservations open; halved every minute.
    private struct Keeping {
        var milliseconds: UInt64 = 0
        var at: UInt64 = 0
        /// Whether the last one was taken within a second.
        var isPrompt = false

        func seconds(at now: UInt64) -> Int {
            let minutes = (now - min(now, at)) / 60_000
            return Int(clamping: (minutes < 64 ? milliseconds >> minutes : 0) / 1_000)
        }

        mutating func add(_ more: UInt64, _ outcome: Outcome, at now: UInt64) {
            let before = UInt64(clamping: seconds(at: now)) * 1_000
            milliseconds = min(before, 1 << 40) + min(more, 1 << 40)
            at = now
            if outcome != .outgrown { isPrompt = outcome == .taken && more < 1_000 }
        }
    }

    private struct Held: Comparable {
        /// Bytes or seconds.
        var amount: Int
        var turn: UInt64

        static func < (left: Held, right: Held) -> Bool { (left.amount, left.turn) < (right.amount, right.turn) }
    }

    private let size: ReadSize
    private let clientMax: Int
    private let runningMax: Int
    private var clients: [String: Client] = [:]
    /// Reads that wait.
    private var requests: [UInt64: Request] = [:]
    private var idsByConnection: [UInt64: [UInt64]] = [:]
    /// Of clients without a read, as many as `formerMax`.
    private var former: [String: Keeping] = [:]
    private static let formerMax = 4_096
    private var now: UInt64 = 0
    /// Clients whose next read runs in a reservation that is there, by turn.
    private var again = IndexedHeap<String, UInt64>()
    /// Clients without a reservation, by the seconds for which they kept reservations open, and by turn.
    private var first = IndexedHeap<String, Held>()
    /// Those among them that kept none open lately, and whose peers took their last result within a second, by turn.
    private var prompt = IndexedHeap<String, UInt64>()
    /// Clients that want a further reservation, by what they hold; keys are too low rather than too high.
    private var further = IndexedHeap<String, Held>()
    private var open: [UInt64: Open] = [:]
    /// The open reservations that were granted beyond `memoryMax`.
    private var beyond: Set<UInt64> = []
    private var waitingForMemory = 0
    private var lastTurn: UInt64 = 0
    private var lastPlace = 0
    private(set) var runningCount = 0

    init(_ size: ReadSize, clientMax: Int, runningMax: Int) {
        self.size = size
        self.clientMax = clientMax
        self.runningMax = max(1, runningMax)
    }

    var waitingCount: Int { requests.count }
    /// Reservations that are granted and not taken.
    var openCount: Int { open.count }

    // MARK: Events

    mutating func outgrew(_ request: Request) {
        lastPlace += 1
        add(request, place: lastPlace)
    }

    /// Another read runs in the reservation of a request that is open; before what waits for a new one.
    mutating func runsAgain(_ request: Request) {
        guard open[request.id] != nil else { return }
        lastPlace += 1
        add(request, place: -lastPlace)
    }

    private mutating func add(_ request: Request, place: Int) {
        var client = clients[request.client] ?? Client()
        if let keeping = former.removeValue(forKey: request.client) { client.keeping = keeping }
        if client.waiting.isEmpty {
            lastTurn += 1
            client.turn = lastTurn
        }
        client.waiting.insert(request.id, place)
        if open[request.id] == nil {
            client.waitingForMemory += 1
            waitingForMemory += 1
        }
        clients[request.client] = client
        requests[request.id] = request
        idsByConnection[request.connection, default: []].append(request.id)
        heldChanged(request.client)
    }

    /// The result of this read is complete, or it has failed.
    mutating func readEnded(_ id: UInt64) {
        guard let opened = open[id], opened.isRunning else { return }
        open[id]?.isRunning = false
        runningCount -= 1
        heldChanged(opened.client)
    }

    /// The peer has taken the result, or there is none.
    mutating func taken(_ id: UInt64, _ outcome: Outcome = .taken, at time: UInt64 = 0) {
        readEnded(id)
        guard let ended = open.removeValue(forKey: id) else { return }
        now = max(now, time)
        beyond.remove(id)
        clients[ended.client]?.open -= 1
        clients[ended.client]?.keeping.add(now - min(now, ended.since), outcome, at: now)
        heldChanged(ended.client)
    }

    /// The connection has closed: what it waits for is dropped. Returns the ids of these reads.
    mutating func closed(_ connection: UInt64, of name: String) -> [UInt64] {
        let dropped = (idsByConnection[connection] ?? []).filter { requests[$0]?.client == name }
        for id in dropped { remove(id) }
        heldChanged(name)
        return dropped
    }

    /// The client may hold less: its next read is looked at again.
    mutating func heldChanged(_ name: String) {
        again.remove(name)
        first.remove(name)
        prompt.remove(name)
        further.remove(name)
        guard let client = clients[name] else { return }
        guard let next = client.waiting.first?.key else {
            if client.open == 0 {
                clients[name] = nil
                noteFormer(name, client.keeping)
            }
            return
        }
        if let opened = open[next] {
            if !opened.isRunning { again.insert(name, client.turn) }
        } else if client.open == 0 {
            first.insert(name, Held(amount: client.keeping.seconds(at: now), turn: client.turn))
            if client.keeping.isPrompt, client.keeping.seconds(at: now) == 0 { prompt.insert(name, client.turn) }
        } else {
            further.insert(name, Held(amount: .min, turn: client.turn))
        }
    }

    private mutating func noteFormer(_ name: String, _ keeping: Keeping) {
        guard keeping.isPrompt || keeping.seconds(at: now) > 0 else { return }
        if former.count >= Self.formerMax {
            let latest = former.sorted { $0.value.at > $1.value.at }.prefix(Self.formerMax / 2)
            former = Dictionary(latest.map { ($0.key, $0.value) }) { first, _ in first }
        }
        former[name] = keeping
    }

    /// Removes a read that waits.
    private mutating func remove(_ id: UInt64) {
        guard let request = requests.removeValue(forKey: id) else { return }
        clients[request.client]?.waiting.remove(id)
        if open[id] == nil {
            clients[request.client]?.waitingForMemory -= 1
            waitingForMemory -= 1
        }
        idsByConnection[request.connection]?.removeAll { $0 == id }
        if idsByConnection[request.connection]?.isEmpty == true { idsByConnection[request.connection] = nil }
    }

    // MARK: Decisions

    /// The next read that goes on; the caller counts the bytes of the size for a new reservation before it asks again.
    /// Nil: all must wait.
    mutating func next(_ memory: Memory) -> Request? {
        now = max(now, memory.now)
        guard runningCount < runningMax else { return nil }
        if let name = nextClient(memory) { return grant(name) }
        guard let name = nextBeyond else { return nil }
        let request = grant(name)
        if let request { beyond.insert(request.id) }
        return request
    }

    private mutating func nextClient(_ memory: Memory) -> String? {
        var next = again.first
        let after = memory.used + size.bytes
        guard after <= size.memoryMax else { return next?.key }
        if let (name, rank) = first.first, rank.amount == 0 || after + size.bytes <= size.memoryMax,
            rank.turn < next?.priority ?? .max
        {
            next = (name, rank.turn)
        }
        while let (name, rank) = further.first {
            let held = Held(amount: memory.usedByClient(name), turn: rank.turn)
            guard held == rank else {
                further.insert(name, held)
                continue
            }
            let own = held.amount + size.bytes
            let fits = own <= clientMax && own <= size.memoryMax - after
            if fits, rank.turn < next?.priority ?? .max { next = (name, rank.turn) }
            break
        }
        return next?.key
    }

    private mutating func grant(_ name: String) -> Request? {
        guard let id = clients[name]?.waiting.first?.key, let request = requests[id] else { return nil }
        remove(id)
        if open[id] == nil { clients[name]?.open += 1 }
        open[id] = Open(client: name, isRunning: true, since: open[id]?.since ?? now)
        runningCount += 1
        lastTurn += 1
        clients[name]?.turn = lastTurn
        heldChanged(name)
        return request
    }

    /// Whether something of this client waits.
    func isWaiting(_ name: String) -> Bool { clients[name]?.waiting.isEmpty == false }

    /// Whether a read of another connection waits for what this one holds: one of the same client that would exceed its
    /// share, or one that all together leave no memory for. Not where reads wait only until others have run.
    ///
    /// - Parameters:
    ///   - used: bytes that all connections hold.
    ///   - held: bytes that this client holds.
    func isAwaited(_ connection: UInt64, of client: String, used: Int, held: Int) -> Bool {
        let own = idsByConnection[connection]?.filter { open[$0] == nil } ?? []
        let after = used + size.bytes
        guard after <= size.memoryMax else { return nextBeyond == nil && waitingForMemory > own.count }
        guard held + size.bytes > min(clientMax, size.memoryMax - after) else { return false }
        return (clients[client]?.waitingForMemory ?? 0) > own.count { requests[$0]?.client == client }
    }

    /// The client without an open reservation that gets one where nothing fits.
    private var nextBeyond: String? {
        guard let (name, rank) = first.first, beyond.count < size.beyondMax else { return nil }
        let leftToPrompt = size.beyondMax >= 3 ? 1 : 0
        let left = leftToPrompt + (rank.amount > 0 ? 1 : 0)
        if open.isEmpty || beyond.count + left < size.beyondMax { return name }
        return leftToPrompt > 0 ? prompt.first?.key : nil
    }
}
