/// Decides which large reads go on, and in which order. Pure: events in, decisions out.
///
/// Every read starts with a small reservation that it never waits for. One whose result outgrows it is dropped, waits
/// here, and begins again with a reservation of `bytes`. A reservation is open from its grant until the peer has taken
/// the result.
///
/// - At most `runningMax` large reads run at a time, so that readers stay free for small ones.
/// - Clients take turns; the reads of one client are granted in the order in which they came.
/// - A quarter of the limit stays free of large reads: small ones and requests find room.
/// - The first reservation of a client needs room for itself. Each further one also leaves as much free as the client
///   then holds, and keeps the client within `clientMax`.
/// - Where nothing fits, one client without an open reservation gets one beyond the limit: reads always make progress.
/// - A batch has one reservation for all its entries. A further large read of it waits for its turn to run, not for
///   memory.
struct ReadReservationQueue {
    /// A read that has outgrown its small reservation.
    struct Request: Sendable, Hashable {
        var id: UInt64
        var connection: UInt64
        var client: String
    }

    /// What is held when a decision is made, in bytes.
    struct Memory {
        /// By all.
        var used: Int
        var usedByClient: (String) -> Int
    }

    private struct Client {
        var waiting: [Request] = []
        /// Reservations that are granted and not taken.
        var open = 0

        var isUnused: Bool { waiting.isEmpty && open == 0 }
    }

    private struct Open {
        var client: String
        var isRunning: Bool
    }

    /// What one large read reserves.
    let bytes: Int
    private let largeMax: Int
    private let clientMax: Int
    private let runningMax: Int
    private var clients: [String: Client] = [:]
    /// Clients with reads that wait; the one whose turn is next first.
    private var turns: [String] = []
    private var open: [UInt64: Open] = [:]
    /// The open reservation that was granted beyond the limit.
    private var overdrawn: UInt64?
    private(set) var waitingCount = 0
    private(set) var runningCount = 0

    /// - Parameter limit: bytes that all connections may hold.
    init(bytes: Int, limit: Int, clientMax: Int, runningMax: Int) {
        self.bytes = bytes
        largeMax = limit - limit / 4
        self.clientMax = clientMax
        self.runningMax = max(1, runningMax)
    }

    /// Reservations that are granted and not taken.
    var openCount: Int { open.count }

    // MARK: Events

    mutating func outgrew(_ request: Request) {
        var client = clients[request.client] ?? Client()
        if client.waiting.isEmpty { turns.append(request.client) }
        client.waiting.append(request)
        clients[request.client] = client
        waitingCount += 1
    }

    /// Another read runs in the reservation of a request that is open; before what waits for a new one.
    mutating func runsAgain(_ request: Request) {
        guard open[request.id] != nil else { return }
        var client = clients[request.client] ?? Client()
        if client.waiting.isEmpty { turns.append(request.client) }
        client.waiting.insert(request, at: 0)
        clients[request.client] = client
        waitingCount += 1
    }

    /// The result of this read is complete, or it has failed.
    mutating func readEnded(_ id: UInt64) {
        guard open[id]?.isRunning == true else { return }
        open[id]?.isRunning = false
        runningCount -= 1
    }

    /// The peer has taken the result, or there is none.
    mutating func taken(_ id: UInt64) {
        readEnded(id)
        guard let ended = open.removeValue(forKey: id) else { return }
        if overdrawn == id { overdrawn = nil }
        clients[ended.client]?.open -= 1
        removeIfUnused(ended.client)
    }

    /// The connection has closed: what it waits for is dropped. Returns the ids of these reads.
    mutating func closed(_ connection: UInt64, of name: String) -> [UInt64] {
        guard var client = clients[name] else { return [] }
        let dropped = client.waiting.filter { $0.connection == connection }
        guard !dropped.isEmpty else { return [] }
        client.waiting.removeAll { $0.connection == connection }
        clients[name] = client
        waitingCount -= dropped.count
        if client.waiting.isEmpty { turns.removeAll { $0 == name } }
        removeIfUnused(name)
        return dropped.map(\.id)
    }

    private mutating func removeIfUnused(_ name: String) {
        if clients[name]?.isUnused == true { clients[name] = nil }
    }

    // MARK: Decisions

    /// The next read that goes on; the caller counts `bytes` for a new reservation before it asks again. Nil: all must
    /// wait.
    mutating func next(_ memory: Memory) -> Request? {
        guard runningCount < runningMax else { return nil }
        if let index = turns.firstIndex(where: { fits($0, memory) }) { return grant(index) }
        guard overdrawn == nil, let index = turns.firstIndex(where: { clients[$0]?.open == 0 }) else { return nil }
        let request = grant(index)
        overdrawn = request?.id
        return request
    }

    private func fits(_ name: String, _ memory: Memory) -> Bool {
        if let first = clients[name]?.waiting.first, let opened = open[first.id] { return !opened.isRunning }
        let after = memory.used + bytes
        guard after <= largeMax else { return false }
        if clients[name]?.open == 0 { return true }
        let own = memory.usedByClient(name) + bytes
        return own <= clientMax && own <= largeMax - after
    }

    private mutating func grant(_ index: Int) -> Request? {
        let name = turns.remove(at: index)
        guard var client = clients[name], !client.waiting.isEmpty else { return nil }
        let request = client.waiting.removeFirst()
        if open[request.id] == nil { client.open += 1 }
        clients[name] = client
        if !client.waiting.isEmpty { turns.append(name) }
        open[request.id] = Open(client: name, isRunning: true)
        waitingCount -= 1
        runningCount += 1
        return request
    }

    /// Whether a read of another connection waits for what this one holds: one of the same client, or one that all
    /// together leave no room for.
    func isAwaited(_ connection: UInt64, of client: String, used: Int) -> Bool {
        guard waitingCount > 0 else { return false }
        if used + bytes > largeMax { return clients.values.contains { waitsForMemory($0, butBy: connection) } }
        return clients[client].map { waitsForMemory($0, butBy: connection) } ?? false
    }

    private func waitsForMemory(_ client: Client, butBy connection: UInt64) -> Bool {
        client.waiting.contains { $0.connection != connection && open[$0.id] == nil }
    }
}
