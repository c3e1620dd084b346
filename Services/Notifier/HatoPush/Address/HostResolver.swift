import Dispatch
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Finds the addresses of a host name.
public protocol HostResolver: Sendable {
    func addresses(of host: String) async throws(AddressRefusal) -> [IPAddress]
}

/// How many look-ups there are at a time, so that names whose servers are slow take nothing from the others.
public struct ResolverLimits: Sendable, Hashable {
    /// Look-ups under way, each on a thread that the operating system blocks for as long as the name servers take.
    public var lookUpsMax = 16
    /// Those among them for names of one domain: names without a response delay only these.
    public var lookUpsPerDomainMax = 2
    /// Names of one domain that wait for a look-up; further ones are refused at once.
    public var waitingPerDomainMax = 64
    /// How long a caller waits, for a thread and for the response together.
    public var timeout: Duration = .seconds(5)

    public init() {}
}

/// The operating system's resolver, on a bounded number of threads; concurrent callers for one name share one
/// look-up.
public final class SystemHostResolver: HostResolver {
    private let limits: ResolverLimits
    private let lookUp: @Sendable (String) -> Result<[IPAddress], AddressRefusal>
    private let state: Mutex<LookUps>
    private let threads = DispatchQueue(label: "hato.push.resolve", attributes: .concurrent)
    private let deadlines = DispatchQueue(label: "hato.push.resolve.deadlines")

    /// A resolver of the operating system.
    public convenience init(limits: ResolverLimits = ResolverLimits()) { self.init(limits: limits, lookUp: resolve) }

    /// `lookUp` blocks its thread until it has the answer.
    init(limits: ResolverLimits, lookUp: @escaping @Sendable (String) -> Result<[IPAddress], AddressRefusal>) {
        self.limits = limits
        self.lookUp = lookUp
        state = Mutex(LookUps(limits))
    }

    public func addresses(of host: String) async throws(AddressRefusal) -> [IPAddress] {
        let host = host.lowercased()
        let answer = await withCheckedContinuation { (asking: CheckedContinuation<Answer, Never>) in
            let (ticket, start) = state.withLock { $0.asked(host, asking) }
            guard let ticket else {
                return asking.resume(
                    returning: .failure(.unresolvable(host: host, "too many names of its domain wait for an answer")))
            }
            if start { run(host) }
            let patience = limits.timeout.components
            let end = DispatchTime.now() + Double(patience.seconds) + Double(patience.attoseconds) * 1e-18
            deadlines.asyncAfter(deadline: end) { [self] in
                state.withLock { $0.gaveUp(host, ticket) }?.resume(
                    returning: .failure(.unresolvable(host: host, "the name server does not answer")))
            }
        }
        return try answer.get()
    }

    private func run(_ host: String) {
        threads.async { [self] in
            let answer = lookUp(host)
            let (asking, next) = state.withLock { $0.answered(host) }
            for asking in asking { asking.resume(returning: answer) }
            for host in next { run(host) }
        }
    }
}

private typealias Answer = Result<[IPAddress], AddressRefusal>

/// Which names are being looked up, which wait, and the callers that wait for them.
private struct LookUps {
    private let limits: ResolverLimits
    private var running: Set<String> = []
    private var runningByDomain: [String: Int] = [:]
    /// Names without a look-up yet, the longest waiting first.
    private var waiting: [String] = []
    private var asking: [String: [UInt64: CheckedContinuation<Answer, Never>]] = [:]
    private var nextTicket: UInt64 = 0

    init(_ limits: ResolverLimits) { self.limits = limits }

    /// Nil when the domain has too many names waiting; else what to give up by, and whether to look the name up now.
    mutating func asked(
        _ host: String, _ continuation: CheckedContinuation<Answer, Never>
    ) -> (ticket: UInt64?, start: Bool) {
        let isKnown = running.contains(host) || waiting.contains(host)
        let start = !isKnown && mayRun(host)
        if !isKnown, !start {
            let before = waiting.count { domain($0) == domain(host) }
            guard before < limits.waitingPerDomainMax else { return (nil, false) }
            waiting.append(host)
        }
        if start { began(host) }
        nextTicket += 1
        asking[host, default: [:]][nextTicket] = continuation
        return (nextTicket, start)
    }

    /// Nil when it has its response. A name that no caller waits for any more needs no look-up.
    mutating func gaveUp(_ host: String, _ ticket: UInt64) -> CheckedContinuation<Answer, Never>? {
        let continuation = asking[host]?.removeValue(forKey: ticket)
        if asking[host]?.isEmpty ?? false {
            asking[host] = nil
            waiting.removeAll { $0 == host }
        }
        return continuation
    }

    /// The callers that waited for the name, and which names to look up next.
    mutating func answered(_ host: String) -> (asking: [CheckedContinuation<Answer, Never>], next: [String]) {
        running.remove(host)
        let left = runningByDomain[domain(host), default: 1] - 1
        runningByDomain[domain(host)] = left > 0 ? left : nil
        var next: [String] = []
        var stillWaiting: [String] = []
        for host in waiting {
            if mayRun(host) {
                began(host)
                next.append(host)
            } else {
                stillWaiting.append(host)
            }
        }
        waiting = stillWaiting
        return (asking.removeValue(forKey: host).map { Array($0.values) } ?? [], next)
    }

    private func mayRun(_ host: String) -> Bool {
        running.count < limits.lookUpsMax && runningByDomain[domain(host), default: 0] < limits.lookUpsPerDomainMax
    }

    private mutating func began(_ host: String) {
        running.insert(host)
        runningByDomain[domain(host), default: 0] += 1
    }

    /// The last two labels: what one owner can make any number of names under. Under a shared ending such as `co.uk`
    /// that takes unrelated names together, which costs them no more than a short wait.
    private func domain(_ host: String) -> String { host.split(separator: ".").suffix(2).joined(separator: ".") }
}

@Sendable private func resolve(_ host: String) -> Answer {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_ADDRCONFIG
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &list)
    guard code == 0 else { return .failure(.unresolvable(host: host, String(cString: gai_strerror(code)))) }
    defer { freeaddrinfo(list) }
    var addresses: [IPAddress] = []
    var next = list
    while let entry = next {
        if let address = address(of: entry.pointee), !addresses.contains(address) { addresses.append(address) }
        next = entry.pointee.ai_next
    }
    return .success(addresses)
}

private func address(of entry: addrinfo) -> IPAddress? {
    guard let raw = UnsafeRawPointer(entry.ai_addr) else { return nil }
    switch entry.ai_family {
    case AF_INET:
        return .v4(UInt32(bigEndian: raw.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
    case AF_INET6:
        var address = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
        return .v6(withUnsafeBytes(of: &address) { Array($0) })
    default:
        return nil
    }
}
