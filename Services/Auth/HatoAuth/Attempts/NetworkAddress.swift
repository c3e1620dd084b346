#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Where a call comes from, as limits count it: an IPv4 address, or the /64 of an IPv6 address, which is what one
/// customer gets.
struct NetworkAddress: Sendable, Hashable {
    var network: String
    var isLoopback: Bool

    /// Takes `192.0.2.1`, `2001:db8::1`, each also with a port (`192.0.2.1:80`, `[2001:db8::1]:80`); others stand for
    /// themselves.
    init(_ text: String) {
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
        let network = bytes[..<8].map { String($0, radix: 16) }.joined(separator: ":") + "/64"
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
