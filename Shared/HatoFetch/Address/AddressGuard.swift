/// Decides whether an address may be called, and to which IP address the connection must go.
///
/// Addresses are given by users, so calling them must not reach what only this machine can reach. A host is resolved
/// once; every address it has must be public; and the caller connects to the very address that was checked
/// (`Admitted.address`), so that a second answer of the name server changes nothing. Asked when a device is registered
/// and again before each send.
public struct AddressGuard: Sendable {
    /// What is called although it is not `https` to the public internet.
    public struct Policy: Sendable, Hashable {
        /// Also loopback and private addresses, plain http, and any port: for a laptop, a test, or receivers in one's
        /// own network.
        public var allowsPrivate: Bool
        /// The ports of addresses on the public internet.
        public var ports: [Int]

        public init(allowsPrivate: Bool = false, ports: [Int] = [443, 8443]) {
            self.allowsPrivate = allowsPrivate
            self.ports = ports
        }
    }

    /// An address that was checked.
    public struct Admitted: Sendable, Hashable {
        /// The address as it was given.
        public var url: StrictURL
        /// The address its name resolved to: the request goes there and nowhere else.
        public var address: IPAddress
    }

    private let policy: Policy
    private let resolver: any HostResolver

    public init(_ policy: Policy, resolver: any HostResolver = SystemHostResolver()) {
        self.policy = policy
        self.resolver = resolver
    }

    /// Checks an address and resolves its name. Throws `AddressRefusal`.
    public func admit(_ text: String, for caller: LookUpCaller) async throws(AddressRefusal) -> Admitted {
        let url = try StrictURL(text)
        if !policy.allowsPrivate {
            guard url.scheme == "https" else { throw .plainHTTP }
            guard policy.ports.contains(url.port) else { throw .portNotAllowed(url.port, allowed: policy.ports) }
        }
        if let literal = url.literal { return try admit(url, [literal]) }
        return try admit(url, await resolver.addresses(of: url.host, for: caller))
    }

    /// One address that is not allowed spoils the host: a name that also leads inside is not a public receiver.
    private func admit(_ url: StrictURL, _ addresses: [IPAddress]) throws(AddressRefusal) -> Admitted {
        guard let first = addresses.first else { throw .unresolvable(host: url.host, "it has no address") }
        guard addresses.allSatisfy({ policy.allowsPrivate ? $0.isOneHost : $0.isPublic }) else {
            throw .privateAddress(host: url.host)
        }
        return Admitted(url: url, address: first)
    }
}
