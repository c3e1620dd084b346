/// How much the clients of each address take of a gateway: a value, which gets the time.
///
/// An address is an IPv4 address or the /64 of an IPv6 address (`ClientAddress`). A customer may have thousands of the
/// latter, so the site of an IPv6 address, its /48, is bounded too: by `siteFactor` times what an address may take. The
/// keys of addresses and sites differ, and stand in the same tables. The table of connections has no more
/// entries than twice the connections. The table of requests has at most `2 * addressesMax`: the addresses that came
/// last; one that was dropped begins anew.
struct AddressLoad: Sendable {
    struct Limits: Sendable, Hashable {
        /// Connections of one address.
        var connectionsMax: Int
        /// Connections of one site.
        var connectionsOfSiteMax = Int.max - AddressLoad.refusedMax
        /// Requests of one address a second; 0: any number.
        var requestsPerSecondMax: Int
        /// Addresses with a count of requests, in each of two tables.
        var addressesMax = GatewayLimits().countedAddressesMax
    }

    /// What becomes of a connection.
    enum Admission: Sendable, Hashable {
        case admitted
        /// Its requests are refused.
        case refused
        /// It is closed at once: too many of its address are being refused.
        case dropped
    }

    /// How many times as much as one address a site may take: settings name it, and are none for it.
    static let siteFactor = 4
    /// Connections of one address, beyond those that it may have, whose clients get a response that says so.
    static let refusedMax = 32
    /// Seconds for which an address may save the requests that it does not send: part of what
    /// `requests-per-address-second-max` means.
    private static let savedSeconds: Int64 = 10

    private let limits: Limits
    private var connections: [String: Int] = [:]
    /// By address, the time in microseconds at which all its requests so far were due, were they sent at the limit.
    private var dueTimes: [String: Int64] = [:]
    private var olderDueTimes: [String: Int64] = [:]

    init(_ limits: Limits) { self.limits = limits }

    /// Addresses with connections, and with a count of requests.
    var counts: (connections: Int, requests: Int) { (connections.count, dueTimes.count + olderDueTimes.count) }

    // MARK: Connections

    /// A connection begins. Unless it is dropped, its end must be reported.
    ///
    /// - Parameter site: that of the address; nil: it has none.
    mutating func began(_ address: String, site: String? = nil) -> Admission {
        let count = connections[address, default: 0]
        let ofSite = site.map { connections[$0, default: 0] } ?? 0
        guard count < limits.connectionsMax + Self.refusedMax, ofSite < limits.connectionsOfSiteMax + Self.refusedMax
        else { return .dropped }
        connections[address] = count + 1
        if let site { connections[site] = ofSite + 1 }
        return count < limits.connectionsMax && ofSite < limits.connectionsOfSiteMax ? .admitted : .refused
    }

    /// A connection has ended.
    mutating func ended(_ address: String, site: String? = nil) {
        for key in [address, site].compactMap({ $0 }) {
            guard let count = connections[key] else { continue }
            connections[key] = count > 1 ? count - 1 : nil
        }
    }

    // MARK: Requests

    /// A request came.
    ///
    /// - Parameters:
    ///   - site: that of the address; nil: it has none.
    ///   - now: in microseconds, of a clock that never goes back.
    /// - Returns: seconds after which the client may try again; nil: the request is handled.
    mutating func requestCame(from address: String, site: String? = nil, at now: Int64) -> Int? {
        guard limits.requestsPerSecondMax > 0 else { return nil }
        var dues = [(address, due(address, Int64(limits.requestsPerSecondMax), now))]
        if let site { dues.append((site, due(site, Int64(limits.requestsPerSecondMax) * Int64(Self.siteFactor), now))) }
        // A refused request counts nowhere.
        if let seconds = dues.compactMap(\.1.secondsLeft).max() { return seconds }
        for (key, due) in dues {
            if dueTimes[key] == nil, dueTimes.count >= limits.addressesMax {
                (olderDueTimes, dueTimes) = (dueTimes, [:])
            }
            dueTimes[key] = due.time
        }
        return nil
    }

    /// When all requests of an address or a site, with one more, are due at so many a second.
    private func due(_ key: String, _ perSecondMax: Int64, _ now: Int64) -> (time: Int64, secondsLeft: Int?) {
        let interval = max(1, 1_000_000 / perSecondMax)
        let time = max(dueTimes[key] ?? olderDueTimes[key] ?? now, now)
        let saved = max(interval, Self.savedSeconds * 1_000_000)
        guard time - now + interval <= saved else {
            return (time, Int((time - now + interval - saved + 999_999) / 1_000_000))
        }
        return (time + interval, nil)
    }
}
