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

    private struct Entry {
        var client: HTTPClient
        var users: Int
        var lastUse: UInt64
    }

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
        var tls = configuration.tlsConfiguration ?? .makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        configuration.tlsConfiguration = tls
        self.configuration = configuration
        self.clientsMax = clientsMax
    }

    /// Lends the client of an admitted address to `body`; nil after `shutdown`.
    public func withClient<Outcome: Sendable>(
        for admitted: AddressGuard.Admitted, _ body: @Sendable (HTTPClient) async -> Outcome
    ) async -> Outcome? {
        guard !isShutDown else { return nil }
        let key = Key(host: admitted.url.host, address: admitted.address)
        let client = borrow(key)
        let outcome = await body(client)
        await giveBack(key)
        return outcome
    }

    /// Closes the connections; one that is in use is closed after its use.
    public func shutdown() async {
        isShutDown = true
        let clients = entries.values.filter { $0.users == 0 }.map(\.client)
        entries = entries.filter { $0.value.users > 0 }
        for client in clients { try? await client.shutdown() }
    }

    private func borrow(_ key: Key) -> HTTPClient {
        uses += 1
        if var entry = entries[key] {
            entry.users += 1
            entry.lastUse = uses
            entries[key] = entry
            return entry.client
        }
        var pinned = configuration
        // A literal address needs no override: it is where the connection goes anyway.
        if IPAddress(key.host) == nil { pinned.dnsOverride = [key.host: key.address.description] }
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: pinned)
        entries[key] = Entry(client: client, users: 1, lastUse: uses)
        return client
    }

    private func giveBack(_ key: Key) async {
        entries[key]?.users -= 1
        while entries.count > clientsMax || isShutDown,
            let idle = entries.filter({ $0.value.users == 0 }).min(by: { $0.value.lastUse < $1.value.lastUse })
        {
            entries[idle.key] = nil
            try? await idle.value.client.shutdown()
        }
    }
}
