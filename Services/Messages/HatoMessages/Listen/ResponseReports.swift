/// Which listeners the next response to a write of their connection is reported to. Pure.
///
/// A listener is reported each response once: it asks again for the next one. Most listeners with changes to send need
/// only those that refuse a condition, so that other writes of the connection cost nothing for them.
struct ResponseReports {
    private struct Connection {
        /// Those that any response is reported to.
        var any: Set<UInt64> = []
        /// Those that a response is reported to if it refuses a condition.
        var refused: Set<UInt64> = []
    }

    private var connections: [UInt64: Connection] = [:]

    /// Any response is reported to the listener.
    mutating func awaitAny(_ listener: UInt64, of connection: UInt64) {
        connections[connection, default: Connection()].any.insert(listener)
        connections[connection]?.refused.remove(listener)
    }

    /// A response that refuses a condition is reported to the listener, and no other.
    mutating func awaitRefused(_ listener: UInt64, of connection: UInt64) {
        connections[connection, default: Connection()].refused.insert(listener)
        connections[connection]?.any.remove(listener)
    }

    mutating func end(_ listener: UInt64, of connection: UInt64) {
        connections[connection]?.any.remove(listener)
        connections[connection]?.refused.remove(listener)
        removeIfEmpty(connection)
    }

    /// A response is about to leave. Returns the listeners it is reported to, in the order in which they were opened.
    ///
    /// - Parameter earlier: the events that it comes after; one that comes after none is not reported.
    mutating func take(_ connection: UInt64, for earlier: EarlierEvents) -> [UInt64] {
        guard earlier.version > 0, let awaiting = connections[connection] else { return [] }
        guard earlier.isRefused else {
            guard !awaiting.any.isEmpty else { return [] }
            connections[connection]?.any = []
            removeIfEmpty(connection)
            return awaiting.any.sorted()
        }
        connections[connection] = nil
        return awaiting.any.union(awaiting.refused).sorted()
    }

    /// The connection is gone.
    mutating func forget(_ connection: UInt64) { connections[connection] = nil }

    /// How many listeners the next response is reported to, when it refuses no condition.
    func count(of connection: UInt64) -> Int { connections[connection]?.any.count ?? 0 }

    private mutating func removeIfEmpty(_ connection: UInt64) {
        guard let awaiting = connections[connection], awaiting.any.isEmpty, awaiting.refused.isEmpty else { return }
        connections[connection] = nil
    }
}
