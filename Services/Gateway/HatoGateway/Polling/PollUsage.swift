/// What each client (`ClientAddress`) has of the polling sessions of one event loop: a value.
///
/// A session has a place as long as it polls; a socket that takes it over gives the place back. Its bytes count up to
/// its end.
struct PollUsage: Sendable {
    struct Limits: Sendable, Hashable {
        /// Sessions that poll.
        var sessionsMax: Int
        /// The same of one client.
        var sessionsPerClientMax: Int
        /// Bytes of all sessions of one client.
        var bytesPerClientMax: Int
    }

    private struct Client {
        var sessions = 0
        var bytes = 0
    }

    private let limits: Limits
    private var clients: [String: Client] = [:]
    /// Sessions that poll.
    private(set) var sessions = 0

    init(_ limits: Limits) { self.limits = limits }

    /// Takes a place for a session; false when there is none.
    mutating func begin(_ client: String) -> Bool {
        let count = clients[client]?.sessions ?? 0
        guard sessions < limits.sessionsMax, count < limits.sessionsPerClientMax else { return false }
        sessions += 1
        clients[client, default: Client()].sessions += 1
        return true
    }

    /// Gives the place of a session back.
    mutating func end(_ client: String) {
        sessions -= 1
        change(client) { $0.sessions -= 1 }
    }

    /// Whether the client may hold so many bytes more, or less.
    func allows(_ change: Int, of client: String) -> Bool {
        change <= 0 || (clients[client]?.bytes ?? 0) + change <= limits.bytesPerClientMax
    }

    /// The client holds so many bytes more, or less.
    mutating func hold(_ change: Int, of client: String) { self.change(client) { $0.bytes += change } }

    private mutating func change(_ client: String, _ body: (inout Client) -> Void) {
        var entry = clients[client] ?? Client()
        body(&entry)
        clients[client] = entry.sessions > 0 || entry.bytes > 0 ? entry : nil
    }

    /// Clients that have something.
    var count: Int { clients.count }
}
