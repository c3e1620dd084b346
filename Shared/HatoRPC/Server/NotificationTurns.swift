import NIOCore

/// The connections of one event loop that have notifications to write, in turn, and what they have not been given yet.
///
/// What was posted for a connection after a notification that waits, waits behind it. A connection is given some of its
/// items in its turn and lines up again for the others.
struct NotificationTurns {
    /// What a turn of a connection costs beside its items, in notifications: a write to its socket takes as long as so
    /// many.
    static let writeCost = 10
    /// Items that a connection is given in one of its turns.
    static let itemsMax = 64

    private var order = CircularBuffer<RPCConnection>()
    /// The connections in `order`.
    private var members: Set<UInt64> = []
    /// By connection, all in `order`.
    private var waiting: [UInt64: CircularBuffer<LoopHub.Item>] = [:]

    var isEmpty: Bool { order.isEmpty }

    /// Whether items wait that the connection was not given.
    func isWaiting(_ connection: RPCConnection) -> Bool { !waiting.isEmpty && waiting[connection.id] != nil }

    /// The connection has something to write.
    mutating func lineUp(_ connection: RPCConnection) {
        if members.insert(connection.id).inserted { order.append(connection) }
    }

    mutating func wait(_ item: LoopHub.Item) {
        waiting[item.connection.id, default: CircularBuffer(initialCapacity: 1)].append(item)
        lineUp(item.connection)
    }

    /// The connection whose turn it is, and what it is given; nil: none has something to write.
    mutating func takeNext() -> (connection: RPCConnection, items: [LoopHub.Item])? {
        guard let connection = order.popFirst() else { return nil }
        members.remove(connection.id)
        guard var items = waiting.removeValue(forKey: connection.id), connection.handler != nil else {
            return (connection, [])
        }
        let taken = Array(items.prefix(Self.itemsMax))
        items.removeFirst(taken.count)
        if !items.isEmpty {
            waiting[connection.id] = items
            lineUp(connection)
        }
        return (connection, taken)
    }
}
