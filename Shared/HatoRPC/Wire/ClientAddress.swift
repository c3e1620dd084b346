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
    /// Whether the peer is on the same machine.
    public let isLoopback: Bool

    /// Takes `192.0.2.1`, `2001:db8::1`, each also with a port (`192.0.2.1:80`, `[2001:db8::1]:80`); others stand for
    /// themselves.
    public init(_ text: String) {
        let host = Self.host(of: text)
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, host, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv4: bytes[..<4])
        } else if inet_pton(AF_INET6, host, &bytes) == 1 {
            (network, isLoopback) = Self.parts(ofIPv6: bytes)
        } else {
            network = host
            isLoopback = host == "localhost"
        }
    }

    private static func parts(ofIPv4 bytes: ArraySlice<UInt8>) -> (network: String, isLoopback: Bool) {
        (bytes.map(String.init).joined(separator: "."), bytes.first == 127)
    }

    private static func parts(ofIPv6 bytes: [UInt8]) -> (network: String, isLoopback: Bool) {
        let isMappedIPv4 = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        if isMappedIPv4 { return parts(ofIPv4: bytes[12...]) }
        let groups = stride(from: 0, to: 8, by: 2).map {
            String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }
        let network = groups.joined(separator: ":") + "::/64"
        return (network, bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] == 1)
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
