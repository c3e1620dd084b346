/// How much the clients of each address take of a gateway: a value, which gets the time.
///
/// An address is an IPv4 address or the /64 of an IPv6 address (`ClientAddress`). The table of connections has no more
/// entries than there are connections. The table of requests has at most `2 * addressesMax`: the addresses that came
/// last; one that was dropped begins anew.
struct AddressLoad: Sendable {
    struct Limits: Sendable, Hashable {
        /// Connections of one address.
        var connectionsMax: Int
        /// Requests of one address a second; 0: any number.
        var requestsPerSecondMax: Int
        /// Addresses with a count of requests, in each of two tables.
        var addressesMax = 32_768
    }

    /// What becomes of a connection.
    enum Admission: Sendable, Hashable {
        case admitted
        /// Its requests are refused.
        case refused
        /// It is closed at once: too many of its address are being refused.
        case dropped
    }

    /// Connections of one address whose requests are refused.
    static let refusedMax = 32
    /// Seconds for which an address may save the requests that it does not send.
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
    mutating func began(_ address: String) -> Admission {
        let count = connections[address, default: 0]
        guard count < limits.connectionsMax + Self.refusedMax else { return .dropped }
        connections[address] = count + 1
        return count < limits.connectionsMax ? .admitted : .refused
    }

    /// A connection has ended.
    mutating func ended(_ address: String) {
        guard let count = connections[address] else { return }
        connections[address] = count > 1 ? count - 1 : nil
    }

    // MARK: Requests

    /// A request came.
    ///
    /// - Parameter now: in microseconds, of a clock that never goes back.
    /// - Returns: seconds after which the client may try again; nil: the request is handled.
    mutating func requestCame(from address: String, at now: Int64) -> Int? {
        guard limits.requestsPerSecondMax > 0 else { return nil }
        let interval = max(1, 1_000_000 / Int64(limits.requestsPerSecondMax))
        let due = max(dueTimes[address] ?? olderDueTimes[address] ?? now, now)
        let saved = max(interval, Self.savedSeconds * 1_000_000)
        guard due - now + interval <= saved else {
            return Int((due - now + interval - saved + 999_999) / 1_000_000)
        }
        if dueTimes[address] == nil, dueTimes.count >= limits.addressesMax {
            (olderDueTimes, dueTimes) = (dueTimes, [:])
        }
        dueTimes[address] = due + interval
        return nil
    }
}
