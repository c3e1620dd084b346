import Dispatch
import Foundation
public import HatoModel
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
    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress]
}

/// For whom a name is looked up.
public struct LookUpCaller: Sendable, Hashable {
    /// The user whose device it is.
    public var uid: String
    /// Whether a delivery waits for it; else it is to be registered.
    public var isDelivery: Bool

    public init(uid: String, isDelivery: Bool) {
        self.uid = uid
        self.isDelivery = isDelivery
    }
}

/// How many look-ups of names there are at a time, so that names whose servers are slow take nothing from the others.
public struct ResolverLimits: Limits, Hashable {
    /// Look-ups under way that are not slow, each on a thread that the operating system blocks for as long as the name
    /// servers take.
    public var lookUpsMax = 16
    /// Those among them that are not for deliveries.
    public var lookUpsToRegisterMax = 8
    /// Those among them for one user.
    public var lookUpsPerUserMax = 2
    /// Those among them that are not for deliveries, for names of one domain.
    public var lookUpsToRegisterPerDomainMax = 2
    /// How long a look-up may run before it is slow: then another one may begin beside it.
    public var slowLookUpMs = 1_000
    /// Slow look-ups besides: nothing ends them but their name servers. A user has at most `lookUpsPerUserMax` of them.
    /// The second half is for users without a slow look-up, so that few users cannot take all.
    public var slowLookUpsMax = 128
    /// Calls of one user that wait for a look-up, of deliveries and others each; further ones are refused at once.
    public var lookUpsWaitingPerUserMax = 64
    /// Calls of all users that wait for a look-up; above, users with the most lose their newest, deliveries last.
    public var lookUpsWaitingMax = 1_024
    /// Milliseconds that a caller waits, for a thread and for the response together.
    public var lookUpMsMax = 5_000
    /// Milliseconds that addresses are remembered, and for a user that a domain did not respond.
    public var lookUpMemoryMs = 60_000

    public init() {}

    var timeout: Duration { .milliseconds(lookUpMsMax) }
    var slowAfter: Duration { .milliseconds(slowLookUpMs) }
    var memory: Duration { .milliseconds(lookUpMemoryMs) }

    public static let all: [Limit<ResolverLimits>] = [
        Limit(
            "look-ups-max", \.lookUpsMax, 1...256,
            "look-ups of names of webhooks at a time that are not slow, each on a thread of its own"),
        Limit(
            "look-ups-to-register-max", \.lookUpsToRegisterMax, 1...256,
            "look-ups at a time for registrations of devices"),
        Limit("look-ups-per-user-max", \.lookUpsPerUserMax, 1...256, "look-ups at a time for one user"),
        Limit(
            "look-ups-to-register-per-domain-max", \.lookUpsToRegisterPerDomainMax, 1...256,
            "look-ups at a time for registrations of devices with names of one domain (the last two labels)"),
        Limit(
            "slow-look-up-ms", \.slowLookUpMs, 1...60_000,
            "milliseconds after which a look-up is slow: another one may begin beside it"),
        Limit(
            "slow-look-ups-max", \.slowLookUpsMax, 0...1_024,
            "slow look-ups besides `look-ups-max`; the second half is for users without one"),
        Limit(
            "look-ups-waiting-per-user-max", \.lookUpsWaitingPerUserMax, 1...65_536,
            "calls of one user that wait for a look-up, for deliveries and for registrations each"),
        Limit(
            "look-ups-waiting-max", \.lookUpsWaitingMax, 1...65_536,
            "calls of all users that wait for a look-up; at the limit, the user with the most loses the newest"),
        Limit(
            "look-up-ms-max", \.lookUpMsMax, 1...60_000,
            "milliseconds a call waits for a look-up, its turn included"),
        Limit(
            "look-up-memory-ms", \.lookUpMemoryMs, 0...3_600_000,
            "milliseconds that addresses of a name are remembered"),
    ]
}

/// The operating system's resolver, on a bounded number of threads; concurrent callers for one name share one
/// look-up, and users take turns.
public final class SystemHostResolver: HostResolver {
    private let limits: ResolverLimits
    private let lookUp: @Sendable (String) -> Result<[IPAddress], AddressRefusal>
    private let state: Mutex<LookUpQueue>
    private let deadlines = DispatchQueue(label: "hato.push.resolve.deadlines")

    /// A resolver of the operating system.
    public convenience init(limits: ResolverLimits = ResolverLimits()) { self.init(limits: limits, lookUp: resolve) }

    /// `lookUp` blocks its thread until it has the answer.
    init(limits: ResolverLimits, lookUp: @escaping @Sendable (String) -> Result<[IPAddress], AddressRefusal>) {
        self.limits = limits
        self.lookUp = lookUp
        state = Mutex(LookUpQueue(limits))
    }

    public func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        let host = host.lowercased()
        let answer = await withCheckedContinuation { (continuation: CheckedContinuation<LookUpResult, Never>) in
            let call = LookUpQueue.Call(host: host, caller: caller) { continuation.resume(returning: $0) }
            let ticket: LookUpQueue.Ticket
            switch state.withLock({ $0.requested(call, at: .now) }) {
            case .known(let answer): return continuation.resume(returning: answer)
            case .waits(let taken, let instead):
                ticket = taken
                if let instead { instead.completion(.failure(.noLookUp(host: instead.host))) }
            case .begins(let taken):
                ticket = taken
                run(host)
            }
            deadlines.asyncAfter(deadline: .now() + limits.timeout.seconds) { [self] in
                guard let (late, answer) = state.withLock({ $0.timePassed(for: ticket, at: .now) }) else { return }
                late.completion(answer)
            }
        }
        return try answer.get()
    }

    /// A look-up has a thread of its own: one that blocked a thread of Dispatch would stop all tasks.
    private func run(_ host: String) {
        deadlines.asyncAfter(deadline: .now() + limits.slowAfter.seconds) { [self] in
            for host in state.withLock({ $0.timePassed(at: .now) }) { run(host) }
        }
        Thread.detachNewThread { [self] in
            let answer = lookUp(host)
            let (calls, next) = state.withLock { $0.lookedUp(host, answer, at: .now) }
            for call in calls { call.completion(answer) }
            for host in next { run(host) }
        }
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}

@Sendable private func resolve(_ host: String) -> LookUpResult {
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
