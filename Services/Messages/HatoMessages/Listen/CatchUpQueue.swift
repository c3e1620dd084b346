import HatoStorage

/// Decides which readings for listeners begin, and in which order. Pure.
///
/// - Clients take turns, and so do the connections of one client.
/// - The readings of one connection begin in the order in which they were asked for, and none while the connection is
///   full: what it would be sent now would be read in vain.
/// - At most so many run at a time: of one connection, of one client, in all.
struct CatchUpQueue {
    struct Limits: Hashable {
        var connection: Int
        var client: Int
        var all: Int
    }

    private struct Connection {
        /// The client that its first reading was asked for.
        var client: String
        var readings = FirstInFirstOut<UInt64>()
        var running = 0
        /// Whether it is among the turns of its client.
        var isListed = false
    }

    private struct Client {
        var turns = FirstInFirstOut<UInt64>()
        var running = 0
        /// Whether it is among the turns of all.
        var isListed = false
    }

    private let limits: Limits
    private var connections: [UInt64: Connection] = [:]
    private var clients: [String: Client] = [:]
    private var turns = FirstInFirstOut<String>()
    /// Connections that take nothing more.
    private var full: Set<UInt64> = []
    private(set) var running = 0

    init(_ limits: Limits) { self.limits = limits }

    /// Whether nothing waits or runs, and no connection is full.
    var isEmpty: Bool { connections.isEmpty && clients.isEmpty && full.isEmpty && running == 0 }

    // MARK: Events

    /// A reading is asked for.
    mutating func add(_ reading: UInt64, for id: UInt64, of client: String) {
        connections[id, default: Connection(client: client)].readings.append(reading)
        list(id)
    }

    /// A reading that `takeNext` has returned is over.
    mutating func ended(_ id: UInt64) {
        guard let client = connections[id]?.client else { return }
        running -= 1
        clients[client]?.running -= 1
        connections[id]?.running -= 1
        list(id)
        removeIfUnused(id)
        list(client)
    }

    /// A connection is full.
    mutating func filled(_ id: UInt64) { full.insert(id) }

    /// A connection has drained.
    mutating func drained(_ id: UInt64) {
        full.remove(id)
        list(id)
    }

    /// What waits for it is dropped.
    mutating func closed(_ id: UInt64) {
        full.remove(id)
        connections[id]?.readings = FirstInFirstOut()
        removeIfUnused(id)
    }

    // MARK: Decisions

    /// The next reading that begins, with its connection and client; nil when none may.
    mutating func takeNext() -> (reading: UInt64, connection: UInt64, client: String)? {
        guard running < limits.all else { return nil }
        while let name = turns.takeFirst() {
            clients[name]?.isListed = false
            guard let id = takeConnection(of: name), let reading = connections[id]?.readings.takeFirst() else {
                list(name)
                continue
            }
            running += 1
            clients[name]?.running += 1
            connections[id]?.running += 1
            list(id)
            list(name)
            return (reading, id, name)
        }
        return nil
    }

    private mutating func takeConnection(of name: String) -> UInt64? {
        guard let client = clients[name], client.running < limits.client else { return nil }
        while let id = clients[name]?.turns.takeFirst() {
            connections[id]?.isListed = false
            if mayRun(id) { return id }
            removeIfUnused(id)
        }
        return nil
    }

    private func mayRun(_ id: UInt64) -> Bool {
        guard let connection = connections[id], !connection.readings.isEmpty, !full.contains(id) else { return false }
        return connection.running < limits.connection
    }

    /// Puts a connection among the turns of its client when one of its readings may begin.
    private mutating func list(_ id: UInt64) {
        guard mayRun(id), let connection = connections[id], !connection.isListed else { return }
        connections[id]?.isListed = true
        clients[connection.client, default: Client()].turns.append(id)
        list(connection.client)
    }

    /// The same for a client, among the turns of all.
    private mutating func list(_ name: String) {
        guard let client = clients[name] else { return }
        if client.running == 0, client.turns.isEmpty {
            clients[name] = nil
        } else if !client.isListed, !client.turns.isEmpty, client.running < limits.client {
            clients[name]?.isListed = true
            turns.append(name)
        }
    }

    private mutating func removeIfUnused(_ id: UInt64) {
        if let connection = connections[id], connection.readings.isEmpty, connection.running == 0, !connection.isListed
        {
            connections[id] = nil
        }
    }
}
