/// Decides which of the requests that wait to start, because client or process hold too much, looks again. Pure.
///
/// - While all hold no more than the limit, requests of clients within their share look again, clients in turn.
/// - While all hold more, one of them does whenever the exemption of the process is free.
/// - One of a client beyond its share does whenever the exemption of that client is free.
///
/// Each event costs the logarithm of the number of requests that wait.
struct StartQueue {
    /// What is held when a decision is made, and which exemptions are free.
    struct Memory {
        /// Whether all hold no more than the limit, or the exemption of the process is free.
        var mayStart: Bool
        /// Whether a client holds more than its share.
        var isBeyondShare: (String) -> Bool
        /// Whether the exemption of a client is free.
        var isExemptionFree: (String) -> Bool
    }

    private var clients: [String: IndexedHeap<UInt64, UInt64>] = [:]
    private var names: [UInt64: String] = [:]
    /// Clients to look at, by turn.
    private var turns = IndexedHeap<String, UInt64>()
    /// Clients beyond their share, whose exemptions are taken, by the time of the last look.
    private var beyondShare = IndexedHeap<String, UInt64>()
    private var lastTurn: UInt64 = 0

    var waitingCount: Int { names.count }

    /// A connection has a request that waits; it keeps its place when it has waited already.
    mutating func waits(_ connection: UInt64, of client: String) {
        if let before = names[connection], before != client { forget(connection) }
        guard names[connection] == nil else { return }
        names[connection] = client
        lastTurn += 1
        clients[client, default: IndexedHeap()].insert(connection, lastTurn)
        lookAgain(client)
    }

    /// Returns the client that the connection waited for.
    @discardableResult
    mutating func forget(_ connection: UInt64) -> String? {
        guard let client = names.removeValue(forKey: connection) else { return nil }
        clients[client]?.remove(connection)
        if clients[client]?.isEmpty == true {
            clients[client] = nil
            turns.remove(client)
            beyondShare.remove(client)
        }
        return client
    }

    /// A client holds less, or its exemption is free.
    mutating func lookAgain(_ client: String) {
        guard clients[client] != nil, !turns.contains(client) else { return }
        beyondShare.remove(client)
        lastTurn += 1
        turns.insert(client, lastTurn)
    }

    /// Others hold less: shares may have grown. Each time another client is looked at.
    mutating func lookAgainAtOneBeyondShare() {
        if let client = beyondShare.first?.key { lookAgain(client) }
    }

    private mutating func isLeftBeyondShare(_ client: String) {
        guard clients[client] != nil else { return }
        lastTurn += 1
        beyondShare.insert(client, lastTurn)
    }

    /// The next connection that looks again, which is forgotten; nil: all must wait.
    mutating func next(_ memory: Memory) -> UInt64? {
        while let client = turns.first?.key {
            let isBeyondShare = memory.isBeyondShare(client)
            guard isBeyondShare || memory.mayStart else { return nil }
            turns.remove(client)
            if isBeyondShare, !memory.isExemptionFree(client) {
                isLeftBeyondShare(client)
                continue
            }
            guard let connection = clients[client]?.first?.key else { continue }
            forget(connection)
            // The others of a client beyond its share wait for the exemption that this one takes.
            if isBeyondShare { isLeftBeyondShare(client) } else { lookAgain(client) }
            return connection
        }
        return nil
    }

    /// Whether something of this client waits.
    func isWaiting(_ name: String) -> Bool { clients[name] != nil }

    /// Whether another connection than this one waits.
    func isAwaited(butBy connection: UInt64) -> Bool { names.count > (names[connection] == nil ? 0 : 1) }

    /// Whether another connection of the same client waits.
    func isAwaited(butBy connection: UInt64, of client: String) -> Bool {
        (clients[client]?.count ?? 0) > (names[connection] == client ? 1 : 0)
    }
}
