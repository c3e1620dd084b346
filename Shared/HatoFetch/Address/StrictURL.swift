/// An http or https address, read strictly: what two parsers could understand differently is refused.
public struct StrictURL: Sendable, Hashable {
    /// `https` or `http`.
    public var scheme: String
    /// Lower case, without brackets; an IPv4 address only in its one decimal spelling.
    public var host: String
    /// The port; without one in the text, that of the scheme.
    public var port: Int
    /// Path and query, beginning with `/`.
    public var target: String
    /// The address when the host is one.
    public var literal: IPAddress?

    static let bytesMax = 2_048

    /// Reads an address. Throws `AddressRefusal` when it is none.
    public init(_ text: String) throws(AddressRefusal) {
        guard text.utf8.count <= StrictURL.bytesMax else { throw .invalidURL("it is longer than 2,048 bytes") }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !StrictURL.unsafe.contains($0) }) else {
            throw .invalidURL("it has characters that must be percent-encoded, and a host must be in its ASCII form")
        }
        guard let schemeEnd = text.firstRange(of: "://") else {
            throw .invalidURL("it has no scheme; https:// is meant")
        }
        scheme = text[..<schemeEnd.lowerBound].lowercased()
        guard scheme == "https" || scheme == "http" else { throw .invalidURL("its scheme is neither https nor http") }
        let rest = text[schemeEnd.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let target = rest[authority.endIndex...]
        guard !target.contains("#") else { throw .invalidURL("a fragment is never sent") }
        guard !authority.contains("@") else { throw .invalidURL("it must not hold a user or password") }
        self.target = target.isEmpty ? "/" : target.hasPrefix("?") ? "/" + target : String(target)
        (host, literal, port) = try StrictURL.parse(authority: authority, scheme: scheme)
    }

    /// As it is sent: normalised.
    public var text: String {
        let shown = if case .v6 = literal { "[\(host)]" } else { host }
        return "\(scheme)://\(shown)\(port == StrictURL.defaultPort(scheme) ? "" : ":\(port)")\(target)"
    }

    static func defaultPort(_ scheme: String) -> Int { scheme == "https" ? 443 : 80 }

    private static let unsafe = Set(#""<>\^`{|}"#.utf8)

    private static func parse(
        authority: Substring, scheme: String
    ) throws(AddressRefusal) -> (host: String, literal: IPAddress?, port: Int) {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { throw .invalidURL("its IPv6 address has no end") }
            let inner = String(authority[authority.index(after: authority.startIndex)..<end])
            guard inner.contains(":"), let address = IPAddress(inner) else {
                throw .invalidURL("its IPv6 address is not one")
            }
            return (address.description, address, try port(authority[authority.index(after: end)...], scheme: scheme))
        }
        let name = authority.prefix { $0 != ":" }
        let port = try port(authority[name.endIndex...], scheme: scheme)
        var host = name.lowercased()
        if host.hasSuffix(".") { host.removeLast() }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard host.utf8.count <= 253, labels.allSatisfy(isLabel) else { throw .invalidURL("its host is not a name") }
        if let last = labels.last, endsInNumber(last) {
            guard let address = IPAddress(host) else {
                throw .invalidURL("its IPv4 address is not spelled as four decimal numbers")
            }
            return (host, address, port)
        }
        return (host, nil, port)
    }

    private static func port(_ text: Substring, scheme: String) throws(AddressRefusal) -> Int {
        if text.isEmpty { return defaultPort(scheme) }
        let digits = text.dropFirst()
        guard text.first == ":", (1...5).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = Int(digits), (1...65_535).contains(port)
        else { throw .invalidURL("its port is not a number from 1 to 65535") }
        return port
    }

    private static func isLabel(_ label: Substring) -> Bool {
        (1...63).contains(label.utf8.count)
            && label.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D || byte == 0x5F
            }
    }

    /// WHATWG's test for hosts that resolvers take for numbers: the last label is digits, or hexadecimal after `0x`.
    private static func endsInNumber(_ label: Substring) -> Bool {
        if label.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return true }
        return label.hasPrefix("0x") && label.dropFirst(2).allSatisfy(\.isHexDigit)
    }
}
