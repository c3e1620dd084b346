public import HatoModel

/// The addresses that share their first bits, such as `10.0.0.0/8`, or a single address.
public struct IPNetwork: Sendable, Hashable {
    private let first: UInt128
    private let mask: UInt128
    private let isIPv4: Bool

    /// The bits that all IPv4 addresses share where they are written as IPv6.
    private static let mappedPrefix = 96

    /// Reads an address (`192.0.2.1`, `2001:db8::1`) or a network in CIDR notation (RFC 4632, `10.0.0.0/8`,
    /// `2001:db8::/32`).
    ///
    /// - Throws: `ArgumentError` for another text, and for a network whose address has bits behind its prefix.
    public init(_ text: String) throws(ArgumentError) {
        let words = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = words.first.flatMap({ IPNumber($0) }) else { throw Self.problem(text, "is no IP address") }
        // An IPv4 address in the notation of IPv6 has prefixes of IPv6.
        let bitsMax = words[0].utf8.contains(UInt8(ascii: ":")) ? 128 : 32
        var length = bitsMax
        if words.count == 2 {
            guard words[1].utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = Int(words[1]), number <= bitsMax
            else { throw Self.problem(text, "has no prefix of 0 to \(bitsMax) bits") }
            length = number
        }
        // A shift by all 128 bits gives 0.
        mask = ~UInt128(0) << UInt128(bitsMax - length)
        first = address.bits & mask
        isIPv4 = address.isIPv4 && length + 128 - bitsMax >= Self.mappedPrefix
        guard first == address.bits else {
            let right = IPNumber(bits: first).text
            throw Self.problem(text, "has bits behind its prefix: give \(right)/\(length), or \(address.text) alone")
        }
    }

    private static func problem(_ text: String, _ what: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_network",
            "\"\(text)\" \(what); give addresses and networks, e.g. 10.0.0.0/8,192.0.2.1,2001:db8::/32")
    }

    /// Whether the address is one of them.
    func contains(_ address: IPNumber) -> Bool { address.isIPv4 == isIPv4 && address.bits & mask == first }
}
