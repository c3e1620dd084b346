#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An IPv4 or IPv6 address, and whether the public internet routes it.
public enum IPAddress: Sendable, Hashable {
    case v4(UInt32)
    /// 16 bytes.
    case v6([UInt8])

    /// IPv4 only as four decimal numbers without leading zeros: `127.1`, `0x7f000001` and `0177.0.0.1` are no addresses
    /// here, though some resolvers read them as one.
    public init?(_ text: String) {
        if text.contains(":") {
            guard let bytes = IPAddress.parseV6(text) else { return nil }
            self = .v6(bytes)
        } else {
            guard let value = IPAddress.parseV4(text) else { return nil }
            self = .v4(value)
        }
    }

    private static func parseV4(_ text: String) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                part.utf8.count == 1 || part.utf8.first != 0x30, let byte = UInt8(part)
            else { return nil }
            value = value << 8 | UInt32(byte)
        }
        return value
    }

    private static func parseV6(_ text: String) -> [UInt8]? {
        guard !text.utf8.contains(0) else { return nil }
        var address = in6_addr()
        guard inet_pton(AF_INET6, text, &address) == 1 else { return nil }
        return withUnsafeBytes(of: &address) { Array($0) }
    }
}

extension IPAddress: CustomStringConvertible {
    public var description: String {
        switch self {
        case .v4(let value):
            return "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
        case .v6(let bytes):
            var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            _ = inet_ntop(AF_INET6, bytes, &buffer, socklen_t(buffer.count))
            return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}

extension IPAddress {
    /// Whether the address is one of a single host on the public internet: neither loopback, private, link-local,
    /// unique-local, shared (CGNAT), multicast, documentation, benchmark nor reserved (IANA's special-purpose
    /// registries).
    public var isPublic: Bool {
        switch self {
        case .v4(let value):
            return !IPAddress.specialV4.contains { value >> (32 - $0.bits) == $0.prefix >> (32 - $0.bits) }
        case .v6(let bytes):
            // NAT64 is a way to an IPv4 host, and as public as that one.
            if bytes.starts(with: [0x00, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) {
                return IPAddress.v4(IPAddress.embeddedV4(bytes)).isPublic
            }
            // Only 2000::/3 is global unicast; v4-mapped, v4-compatible, fc00::/7, fe80::/10 and ff00::/8 lie outside.
            guard bytes[0] >> 5 == 0b001 else { return false }
            let head = UInt32(bytes[0]) << 24 | UInt32(bytes[1]) << 16 | UInt32(bytes[2]) << 8 | UInt32(bytes[3])
            return !IPAddress.specialV6.contains { head >> (32 - $0.bits) == $0.prefix >> (32 - $0.bits) }
        }
    }

    /// Whether it is this machine itself.
    public var isLoopback: Bool {
        switch self {
        case .v4(let value): return value >> 24 == 127
        case .v6(let bytes):
            if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
                return IPAddress.v4(IPAddress.embeddedV4(bytes)).isLoopback
            }
            return bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
        }
    }

    /// Whether a connection to it can reach one host at all; what even `AddressGuard.Policy.allowsPrivate` does not
    /// permit.
    public var isOneHost: Bool {
        switch self {
        case .v4(let value): return value != 0 && value >> 28 != 0xE && value != 0xFFFF_FFFF
        case .v6(let bytes):
            if bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) {
                return IPAddress.v4(IPAddress.embeddedV4(bytes)).isOneHost
            }
            return bytes[0] != 0xFF && bytes.contains { $0 != 0 }
        }
    }

    private static func embeddedV4(_ bytes: [UInt8]) -> UInt32 {
        bytes[12..<16].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private struct Block {
        var prefix: UInt32
        var bits: UInt32

        init(_ a: UInt32, _ b: UInt32, _ c: UInt32, bits: UInt32) {
            prefix = a << 24 | b << 16 | c << 8
            self.bits = bits
        }

        init(groups high: UInt32, _ low: UInt32, bits: UInt32) {
            prefix = high << 16 | low
            self.bits = bits
        }
    }

    private static let specialV4 = [
        Block(0, 0, 0, bits: 8),  // this network
        Block(10, 0, 0, bits: 8),  // private
        Block(100, 64, 0, bits: 10),  // shared by carriers
        Block(127, 0, 0, bits: 8),  // loopback
        Block(169, 254, 0, bits: 16),  // link-local, the metadata services of clouds
        Block(172, 16, 0, bits: 12),  // private
        Block(192, 0, 0, bits: 24),  // protocol assignments
        Block(192, 0, 2, bits: 24),  // documentation
        Block(192, 88, 99, bits: 24),  // 6to4 relays
        Block(192, 168, 0, bits: 16),  // private
        Block(198, 18, 0, bits: 15),  // benchmarks
        Block(198, 51, 100, bits: 24),  // documentation
        Block(203, 0, 113, bits: 24),  // documentation
        Block(224, 0, 0, bits: 4),  // multicast
        Block(240, 0, 0, bits: 4),  // reserved, broadcast
    ]

    private static let specialV6 = [
        Block(groups: 0x2001, 0x0000, bits: 23),  // protocol assignments, Teredo
        Block(groups: 0x2001, 0x0DB8, bits: 32),  // documentation
        Block(groups: 0x2002, 0x0000, bits: 16),  // 6to4: leads to any IPv4 address
        Block(groups: 0x3FFF, 0x0000, bits: 20),  // documentation
    ]
}
