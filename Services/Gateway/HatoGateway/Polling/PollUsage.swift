/// What each client (`ClientAddress`) has of the polling sessions of one event loop: a value.
///
/// A session has a place as long as it polls; a socket that takes it over gives the place back. Its bytes count up to
/// its end. The site of an IPv6 address (`SiteShare`) has a bound of its own for the places; that of its bytes is one
/// of `HeldBytes`.
struct PollUsage: Sendable {
    struct Limits: Sendable, Hashable {
        /// Sessions that poll.
        var sessionsMax: Int
        /// The same of one client.
        var sessionsPerClientMax: Int
        /// The same of one site.
        var sessionsPerSiteMax: Int { SiteShare.max(sessionsPerClientMax, of: sessionsMax) }
        /// Bytes of all sessions of one client.
        var bytesPerClientMax: Int
    }

    private struct Client {
        var sessions = 0
        var bytes = 0
    }

    private let limits: Limits
    /// By names: those of sites are other ones than those of clients.
    private var clients: [String: Client] = [:]
    /// Sessions that poll.
    private(set) var sessions = 0

    init(_ limits: Limits) { self.limits = limits }

    /// Takes a place for a session; false when there is none.
    ///
    /// - Parameter site: that of the client; nil: it has none.
    mutating func begin(_ client: String, site: String? = nil) -> Bool {
        guard sessions < limits.sessionsMax, count(client) < limits.sessionsPerClientMax,
            site.map({ count($0) < limits.sessionsPerSiteMax }) ?? true
        else { return false }
        sessions += 1
        for name in [client, site].compactMap({ $0 }) { clients[name, default: Client()].sessions += 1 }
        return true
    }

    private func count(_ name: String) -> Int { clients[name]?.sessions ?? 0 }

    /// Gives the place of a session back.
    mutating func end(_ client: String, site: String? = nil) {
        sessions -= 1
        for name in [client, site].compactMap({ $0 }) { change(name) { $0.sessions -= 1 } }
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

    /// Clients and sites that have something.
    var count: Int { clients.count }
}
