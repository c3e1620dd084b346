import HatoModel

/// The connections whose peers have closed their direction and still have responses to come, of which few stay for one
/// address. Pure.
///
/// A peer that has gone looks the same until something is sent to it: without a bound, peers that send requests and
/// close would leave the work of all of them behind.
struct HalfClosedConnections {
    private let perAddressMax: Int
    private var byAddress: [ClientAddress: IndexedHeap<UInt64, UInt64>] = [:]
    /// Under which address a connection counts.
    private var addresses: [UInt64: ClientAddress] = [:]
    private var lastTurn: UInt64 = 0

    init(_ limits: RPCLimits) { perAddressMax = max(1, limits.halfClosedConnectionsPerAddressMax) }

    /// The peer of this connection has closed its direction.
    ///
    /// - Returns: the connection that is closed for it: the one of the address that has been half-closed for longest.
    mutating func began(_ connection: UInt64, from address: ClientAddress) -> UInt64? {
        lastTurn += 1
        ended(connection)
        addresses[connection] = address
        byAddress[address, default: IndexedHeap()].insert(connection, lastTurn)
        guard let open = byAddress[address], open.count > perAddressMax, let oldest = open.first?.key else {
            return nil
        }
        ended(oldest)
        return oldest
    }

    /// The connection speaks for the client of another address; nil: for many, which does not count.
    ///
    /// - Returns: the connection that is closed for it, as of `began`.
    mutating func moved(_ connection: UInt64, to address: ClientAddress?) -> UInt64? {
        guard addresses[connection] != nil else { return nil }
        ended(connection)
        return address.flatMap { began(connection, from: $0) }
    }

    /// The connection has closed.
    mutating func ended(_ connection: UInt64) {
        guard let address = addresses.removeValue(forKey: connection) else { return }
        byAddress[address]?.remove(connection)
        if byAddress[address]?.isEmpty == true { byAddress[address] = nil }
    }
}
