import HatoRPC

/// Answers of writes that wait for events of their own connection (protocol §5: own events come before own answers),
/// because those are still being worked out on another thread.
struct HeldAnswers {
    typealias Answer = @Sendable () -> Void

    private struct Connection {
        /// By whose events are on their way: the version up to which they have been sent.
        var told = IndexedHeap<UInt64, UInt64>()
        /// In the order of their versions.
        var answers: [(version: UInt64, answer: Answer)] = []

        mutating func takeReady() -> [Answer] {
            guard !answers.isEmpty else { return [] }
            let limit = told.first?.priority ?? .max
            let count = answers.prefix { $0.version <= limit }.count
            guard count > 0 else { return [] }
            defer { answers.removeFirst(count) }
            return answers.prefix(count).map(\.answer)
        }
    }

    private var connections: [UInt64: Connection] = [:]

    /// Answers to `connection` about versions after `version` wait for `topic`.
    mutating func wait(_ connection: UInt64, for topic: UInt64, after version: UInt64) {
        connections[connection, default: Connection()].told.insert(topic, version)
    }

    /// `topic` has sent everything up to `version`, or everything there is. Returns what need not wait any more.
    mutating func told(_ connection: UInt64, by topic: UInt64, through version: UInt64? = nil) -> [Answer] {
        // Taken out, so that it is changed in place.
        guard var state = connections.removeValue(forKey: connection) else { return [] }
        guard state.told.contains(topic) else {
            connections[connection] = state
            return []
        }
        if let version { state.told.insert(topic, version) } else { state.told.remove(topic) }
        let ready = state.takeReady()
        if !state.told.isEmpty { connections[connection] = state }
        return ready
    }

    /// The newest version of an answer to the connection that waits; 0 when none does.
    func newest(of connection: UInt64) -> UInt64 { connections[connection]?.answers.last?.version ?? 0 }

    /// Whether answers to the connection wait.
    func hasAnswers(to connection: UInt64) -> Bool { connections[connection]?.answers.isEmpty == false }

    /// False when the answer need not wait.
    mutating func keep(_ answer: @escaping Answer, of version: UInt64, to connection: UInt64) -> Bool {
        guard let least = connections[connection]?.told.first?.priority, least < version else { return false }
        connections[connection]?.answers.append((version, answer))
        return true
    }

    /// The connection is gone.
    mutating func forget(_ connection: UInt64) -> [Answer] {
        connections.removeValue(forKey: connection)?.answers.map(\.answer) ?? []
    }

    /// No more events will be sent.
    mutating func forgetAll() -> [Answer] {
        defer { connections = [:] }
        return connections.values.flatMap { $0.answers.map(\.answer) }
    }
}
