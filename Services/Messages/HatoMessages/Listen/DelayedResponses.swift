import HatoRPC

/// Responses of writes that wait for events of their own connection (protocol §5: own events come before own
/// responses), because those are still being computed on another thread.
struct DelayedResponses {
    typealias Response = @Sendable () -> Void

    private struct Connection {
        /// By whose events are on their way: the version up to which they have been sent.
        var sent = IndexedHeap<UInt64, UInt64>()
        /// In the order of their versions.
        var responses: [(version: UInt64, response: Response)] = []

        mutating func takeReady() -> [Response] {
            guard !responses.isEmpty else { return [] }
            let limit = sent.first?.priority ?? .max
            let count = responses.prefix { $0.version <= limit }.count
            guard count > 0 else { return [] }
            defer { responses.removeFirst(count) }
            return responses.prefix(count).map(\.response)
        }
    }

    private var connections: [UInt64: Connection] = [:]

    /// Responses to `connection` about versions after `version` wait for `topic`.
    mutating func wait(_ connection: UInt64, for topic: UInt64, after version: UInt64) {
        connections[connection, default: Connection()].sent.insert(topic, version)
    }

    /// `topic` has sent everything up to `version`, or everything there is. Returns what need not wait any more.
    mutating func sent(_ connection: UInt64, by topic: UInt64, through version: UInt64? = nil) -> [Response] {
        // Taken out, so that it is changed in place.
        guard var state = connections.removeValue(forKey: connection) else { return [] }
        guard state.sent.contains(topic) else {
            connections[connection] = state
            return []
        }
        if let version { state.sent.insert(topic, version) } else { state.sent.remove(topic) }
        let ready = state.takeReady()
        if !state.sent.isEmpty { connections[connection] = state }
        return ready
    }

    /// The newest version of a response to the connection that waits; 0 when none does.
    func newest(of connection: UInt64) -> UInt64 { connections[connection]?.responses.last?.version ?? 0 }

    /// Whether responses to the connection wait.
    func hasResponses(to connection: UInt64) -> Bool { connections[connection]?.responses.isEmpty == false }

    /// False when the response need not wait.
    mutating func keep(_ response: @escaping Response, of version: UInt64, to connection: UInt64) -> Bool {
        guard let least = connections[connection]?.sent.first?.priority, least < version else { return false }
        connections[connection]?.responses.append((version, response))
        return true
    }

    /// The connection is gone.
    mutating func forget(_ connection: UInt64) -> [Response] {
        connections.removeValue(forKey: connection)?.responses.map(\.response) ?? []
    }

    /// No more events will be sent.
    mutating func forgetAll() -> [Response] {
        defer { connections = [:] }
        return connections.values.flatMap { $0.responses.map(\.response) }
    }
}
