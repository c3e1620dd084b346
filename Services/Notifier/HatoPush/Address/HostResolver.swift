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

/// The operating system's resolver, on threads of its own: it blocks, and takes as long as the name servers do.
public struct SystemHostResolver: HostResolver {
    private let timeout: Duration

    public init(timeout: Duration = .seconds(5)) { self.timeout = timeout }

    public func addresses(of host: String) async throws(AddressRefusal) -> [IPAddress] {
        let answer = await withCheckedContinuation { (continuation: CheckedContinuation<Answer, Never>) in
            let once = Once(continuation)
            resolving.async { once.resume(resolve(host)) }
            let seconds = DispatchTimeInterval.seconds(Int(timeout.components.seconds))
            timing.asyncAfter(deadline: .now() + seconds) {
                once.resume(.failure(.unresolvable(host: host, "the name server does not answer")))
            }
        }
        return try answer.get()
    }
}

private typealias Answer = Result<[IPAddress], AddressRefusal>

private let resolving = DispatchQueue(label: "hato.push.resolve", attributes: .concurrent)
private let timing = DispatchQueue(label: "hato.push.resolve.timeout")

/// Resumes a continuation with what comes first.
private final class Once: Sendable {
    private let waiting: Mutex<CheckedContinuation<Answer, Never>?>

    init(_ continuation: CheckedContinuation<Answer, Never>) { waiting = Mutex(continuation) }

    func resume(_ answer: Answer) {
        let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        continuation?.resume(returning: answer)
    }
}

private func resolve(_ host: String) -> Answer {
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
