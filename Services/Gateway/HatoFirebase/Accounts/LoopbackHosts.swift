/// Which requests an emulator takes by their headers: those of this machine's programs and pages alone. Any other page
/// in a browser could be `owner`, also one whose name leads to this machine.
public struct LoopbackHosts: Sendable, Hashable {
    /// Whether hosts may be IP addresses, too: the emulator listens beyond this machine. No page has power over the
    /// address that is in a request's Host.
    public var takesAddresses: Bool

    public init(takesAddresses: Bool = false) { self.takesAddresses = takesAddresses }

    /// Why a request is refused; nil: it is not.
    public func problem(_ head: RESTHead) -> String? {
        guard let header = head.header("host"), Self.isAuthority(header), let host = Self.host(header),
            Self.isLoopback(host) || isAddress(host)
        else {
            return "An emulator takes requests to loopback names only, such as localhost or 127.0.0.1.\n"
        }
        if let origin = head.header("origin") {
            return Self.isOrigin(origin) && admits(origin, host) ? nil : Self.ofAnotherPage
        }
        // A script of another page has no Origin. A link that is followed shows its response to no page.
        let isOfAnotherSite = head.header("sec-fetch-site") == "cross-site"
        guard isOfAnotherSite, head.header("sec-fetch-mode") != "navigate" else { return nil }
        return head.header("referer").map({ admits($0, host) }) == true ? nil : Self.ofAnotherPage
    }

    private static let ofAnotherPage = "An emulator takes requests of pages of this machine only.\n"

    /// Scheme, host and port alone: nothing behind the host that another reader could take for the host.
    private static func isOrigin(_ text: String) -> Bool {
        text.firstRange(of: "://").map { isAuthority(text[$0.upperBound...]) } == true
    }

    private static func isAuthority(_ text: some StringProtocol) -> Bool {
        text.utf8.allSatisfy { !"/\\?#@".utf8.contains($0) }
    }

    /// Whether a page of this URL may call.
    private func admits(_ url: String, _ host: String) -> Bool {
        guard let origin = AccountText.host(of: url) else { return false }
        return Self.isLoopback(origin) || takesAddresses && origin == host
    }

    private func isAddress(_ host: String) -> Bool {
        takesAddresses && (Self.isAddress(host) || host.first == "[" && host.last == "]")
    }

    /// The name of a Host without its port, in lower case; nil for what is none.
    private static func host(_ header: String) -> String? { AccountText.host(of: "http://\(header)/") }

    /// Whether a host is this machine: `localhost` and names below it, also with a dot behind, addresses of loopback,
    /// and the address by which Android's emulator reaches the loopback of its host.
    public static func isLoopback(_ host: String) -> Bool {
        var host = host.lowercasedASCII
        // The root of all names may stand behind a name.
        if host.hasSuffix("localhost.") { host.removeLast() }
        switch host {
        case "localhost", "::1", "[::1]", "10.0.2.2": return true
        default: return host.hasSuffix(".localhost") || host.hasPrefix("127.") && isAddress(host)
        }
    }

    /// Whether it is an IPv4 address in four decimal numbers.
    private static func isAddress(_ host: String) -> Bool {
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                (1...3).contains(part.utf8.count) && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
                    && (Int(part) ?? 256) < 256
            }
    }
}
