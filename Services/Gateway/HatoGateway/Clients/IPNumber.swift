#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An IP address as a number of 128 bits. IPv4 addresses are written as IPv6 (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2).
struct IPNumber: Sendable, Hashable {
    let bits: UInt128

    private static let mapped: UInt128 = 0xFFFF << 32

    init(bits: UInt128) { self.bits = bits }

    /// Takes `192.0.2.1` and `2001:db8::1`; nil for anything else.
    init?(_ text: some StringProtocol) {
        // What the C library reads ends at the first NUL.
        guard text.utf8.count <= Self.textBytesMax, !text.utf8.contains(0) else { return nil }
        let text = String(text)
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            bits = Self.mapped | bytes[..<4].reduce(0) { $0 << 8 | UInt128($1) }
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            bits = bytes.reduce(0) { $0 << 8 | UInt128($1) }
        } else {
            return nil
        }
    }

    /// The longest IPv6 address in text, with an IPv4 address at its end (INET6_ADDRSTRLEN without NUL).
    private static let textBytesMax = 45

    var isIPv4: Bool { bits >> 32 == 0xFFFF }

    var isLoopback: Bool { isIPv4 ? bits >> 24 & 0xFF == 127 : bits == 1 }

    /// E.g. `192.0.2.1`, `2001:db8:0:0:0:0:0:1`.
    var text: String {
        if isIPv4 { return (0..<4).reversed().map { String(bits >> (8 * $0) & 0xFF) }.joined(separator: ".") }
        return (0..<8).reversed().map { String(bits >> (16 * $0) & 0xFFFF, radix: 16) }.joined(separator: ":")
    }
}
