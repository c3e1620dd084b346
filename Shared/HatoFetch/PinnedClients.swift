public import AsyncHTTPClient
import NIOSSL

/// HTTP clients that connect to one checked address each, whatever a name server says later; the certificate and the
/// `Host` header stay those of the name. The ones used last are kept with their connections, up to a limit.
///
/// Redirects are not followed, connections that cannot be made are not tried again, compressed responses stay so, and
/// TLS is of version 1.2 or newer.
public actor PinnedClients {
    private struct Key: Hashable {
        var host: String
        var address: IPAddress
    }

    private final class Entry {
        let client: HTTPClient
        var users = 0
        var lastUse: UInt64 = 0
        /// Calls in a row without a response in time.
        var late = 0

        init(_ client: HTTPClient) { self.client = client }
    }

    /// After so many calls in a row without a response in time, the next one gets a new client: an HTTP client neither
    /// pings nor drops a connection that has gone silent.
    public static let lateMax = 2

    private let configuration: HTTPClient.Configuration
    private let clientsMax: Int
    private var entries: [Key: Entry] = [:]
    private var uses: UInt64 = 0
    private var isShutDown = false

    /// Clients with this configuration, of which `clientsMax` are kept.
    public init(_ configuration: HTTPClient.Configuration, clientsMax: Int) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.decompression = .disabled
        // There is none, and the attributes of its spans cost a parsed URL for each request.
        configuration.tracing.tracer = nil
        var tls = configuration.tlsConfiguration ?? .makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        configuration.tlsConfiguration = tls
        self.configuration = configuration
        self.clientsMax = clientsMax
    }

    /// Lends the client of an admitted address to `body`; nil after `shutdown`.
    ///
    /// - Parameter isLate: whether an outcome says that no response came in time.
    public func withClient<Outcome: Sendable>(
        for admitted: AddressGuard.Admitted, isLate: @Sendable (Outcome) -> Bool = { _ in false },
        _ body: @Sendable (HTTPClient) async -> Outcome
    ) async -> Outcome? {
        guard !isShutDown else { return nil }
        let key = Key(host: admitted.url.host, address: admitted.address)
        let entry = borrow(key)
        let outcome = await body(entry.client)
        entry.late = isLate(outcome) ? entry.late + 1 : 0
        if entry.late >= Self.lateMax, entries[key] === entry { entries[key] = nil }
        await giveBack(entry, key)
        return outcome
    }

    /// Closes the connections; one that is in use is closed after its use.
    public func shutdown() async {
        isShutDown = true
        let clients = entries.values.filter { $0.users == 0 }.map(\.client)
        entries = entries.filter { $0.value.users > 0 }
        for client in clients { try? await client.shutdown() }
    }

    private func borrow(_ key: Key) -> Entry {
        uses += 1
        let entry = entries[key] ?? Entry(newClient(key))
        entry.users += 1
        entry.lastUse = uses
        entries[key] = entry
        return entry
    }

    private func newClient(_ key: Key) -> HTTPClient {
        var pinned = configuration
        // A literal address needs no override: it is where the connection goes anyway.
        if IPAddress(key.host) == nil { pinned.dnsOverride = [key.host: key.address.description] }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: pinned)
    }

    private func giveBack(_ entry: Entry, _ key: Key) async {
        entry.users -= 1
        if entries[key] !== entry, entry.users == 0 { try? await entry.client.shutdown() }
        while entries.count > clientsMax || isShutDown,
            let idle = entries.filter({ $0.value.users == 0 }).min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[idle.key] = nil
            try? await idle.value.client.shutdown()
        }
    }
}
