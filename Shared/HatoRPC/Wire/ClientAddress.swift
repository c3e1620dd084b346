public import HatoModel

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The address of a client as every limit counts it: an IPv4 address, or the /64 of an IPv6 address, which is what one
/// customer gets (RFC 6177). An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) is IPv4.
///
/// Nothing else decides which addresses are one client: connections, requests in flight, sign-ins, writes.
public struct ClientAddress: Sendable, Hashable {
    /// E.g. `192.0.2.1`, `2001:db8:0:1::/64`.
    public let network: String
    /// What one customer gets at most (RFC 6177): the /48 of an IPv6 address, otherwise `network`. For counts that a
    /// customer with very many networks must not fill.
    public let site: String
    /// Whether the peer is on the same machine.
    public let isLoopback: Bool
    /// Whether it stands for a client of a connection that forwards: that is no peer of this service, also when it is
    /// a loopback address.
    public let isForwarded: Bool

    /// Takes `192.0.2.1`, `2001:db8::1`, each also with a port (`192.0.2.1:80`, `[2001:db8::1]:80`); others stand for
    /// themselves.
    public init(_ text: String) {
        isForwarded = false
        let host = Self.host(of: text)
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv4: bytes[..<4])
            site = network
        } else if inet_pton(AF_INET6, host, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv6: bytes)
            site = Self.site(ofIPv6: bytes) ?? network
        } else {
            network = host
            site = host
            isLoopback = host == "localhost"
        }
    }

    /// The address of a client whose call is forwarded; nil when the text is no IP address, without port or brackets.
    init?(forwarded text: String) {
        // What the C library reads of it ends at the first NUL.
        guard text.utf8.count <= Self.textBytesMax, !text.utf8.contains(0) else { return nil }
        isForwarded = true
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv4: bytes[..<4])
            site = network
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv6: bytes)
            site = Self.site(ofIPv6: bytes) ?? network
        } else {
            return nil
        }
    }

    /// The same address, for the calls that the peer there forwards without naming one.
    init(forwardedBy peer: ClientAddress) {
        (network, site, isLoopback, isForwarded) = (peer.network, peer.site, peer.isLoopback, true)
    }

    /// The longest IPv6 address in text, with an IPv4 address at its end (INET6_ADDRSTRLEN without NUL).
    private static let textBytesMax = 45

    /// The client that limits count for `caller` here: a user, else this address.
    public func client(speakingAs caller: Caller) -> String { ClientAccount.name(caller, self) }

    private static func parts(ofIPv4 bytes: ArraySlice<UInt8>) -> (network: String, isLoopback: Bool) {
        (bytes.map(String.init).joined(separator: "."), bytes.first == 127)
    }

    private static func parts(ofIPv6 bytes: [UInt8]) -> (network: String, isLoopback: Bool) {
        if isMappedIPv4(bytes) { return parts(ofIPv4: bytes[12...]) }
        return (prefix(bytes, groups: 4), bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] == 1)
    }

    private static func site(ofIPv6 bytes: [UInt8]) -> String? { isMappedIPv4(bytes) ? nil : prefix(bytes, groups: 3) }

    private static func isMappedIPv4(_ bytes: [UInt8]) -> Bool {
        bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
    }

    /// The first groups of 16 bits.
    private static func prefix(_ bytes: [UInt8], groups count: Int) -> String {
        let groups = (0..<count).map { String(UInt16(bytes[2 * $0]) << 8 | UInt16(bytes[2 * $0 + 1]), radix: 16) }
        return groups.joined(separator: ":") + "::/\(16 * count)"
    }

    private static func host(of text: String) -> String {
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            return String(text[text.index(after: text.startIndex)..<end])
        }
        let colons = text.utf8.count { $0 == UInt8(ascii: ":") }
        guard colons == 1, let colon = text.firstIndex(of: ":") else { return text }
        return String(text[..<colon])
    }
}
