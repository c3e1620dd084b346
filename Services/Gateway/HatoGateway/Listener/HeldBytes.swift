import HatoRPC

/// How many bytes of incomplete requests and messages an event loop holds, with a bound for all of them and one for
/// those of each client (`ClientAddress`), and of the site of an IPv6 address (`SiteShare`).
///
/// `of` gives the counter of one client, which counts in that of the loop, too.
final class HeldBytes {
    private let totals: Totals
    /// Nil: of no client.
    private let client: String?
    /// Nil: the client has none.
    private let site: String?

    private final class Totals {
        let max: Int
        let perClientMax: Int
        let perSiteMax: Int
        var count = 0
        /// Those that hold something; sites have other names than clients.
        var byClient: [String: Int] = [:]

        init(max: Int, perClientMax: Int) {
            (self.max, self.perClientMax) = (max, perClientMax)
            perSiteMax = SiteShare.max(perClientMax, of: max)
        }

        /// Whether so many bytes more may be held under this name; nil: none.
        func mayAdd(_ bytes: Int, to name: String?, max: Int) -> Bool {
            guard let name else { return true }
            return byClient[name, default: 0] + bytes <= max
        }
    }

    init(max: Int, perClientMax: Int = .max) {
        (totals, client, site) = (Totals(max: max, perClientMax: perClientMax), nil, nil)
    }

    private init(_ totals: Totals, of client: ClientAddress) {
        (self.totals, self.client, site) = (totals, client.network, client.ownSite)
    }

    /// The counter of the client at this IP address.
    func of(_ address: String) -> HeldBytes { of(ClientAddress(address)) }

    /// The counter of this client.
    func of(_ client: ClientAddress) -> HeldBytes { HeldBytes(totals, of: client) }

    /// What all clients hold.
    var count: Int { totals.count }

    /// Takes a change; false, without taking it, when there are too many.
    func change(by bytes: Int) -> Bool {
        if bytes > 0 {
            guard totals.count + bytes <= totals.max, totals.mayAdd(bytes, to: client, max: totals.perClientMax),
                totals.mayAdd(bytes, to: site, max: totals.perSiteMax)
            else { return false }
        }
        add(bytes)
        return true
    }

    func release(_ bytes: Int) { add(-bytes) }

    private func add(_ bytes: Int) {
        totals.count += bytes
        guard bytes != 0 else { return }
        for name in [client, site] {
            guard let name else { continue }
            let own = totals.byClient[name, default: 0] + bytes
            totals.byClient[name] = own > 0 ? own : nil
        }
    }
}
