/// Base64 without padding (RFC 4648), strict: one text for each sequence of bytes.
public struct Base64: Sendable {
    /// The URL-safe alphabet (§5).
    public static let url = Base64(last: "-_")
    /// The standard alphabet (§4).
    public static let standard = Base64(last: "+/")

    private let alphabet: [UInt8]
    private let values: [UInt8]

    private init(last: String) {
        alphabet = Array(("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last).utf8)
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
    }

    /// Encodes without padding.
    public func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.underestimatedCount * 4 + 2) / 3)
        var buffer: UInt32 = 0
        var bits = 0
        for byte in bytes {
            buffer = buffer << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(alphabet[Int(buffer >> UInt32(bits) & 63)])
            }
        }
        if bits > 0 { text.append(alphabet[Int(buffer << UInt32(6 - bits) & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes strictly. Nil for padding, other characters, an impossible length, and stray bits at the end.
    public func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        // Generic code is not specialised for other modules: as such, the loop took a fifth of verifying a token.
        if let bytes = text.withContiguousStorageIfAvailable({ decode(bytes: $0) }) { return bytes }
        return Array(text).withUnsafeBufferPointer { decode(bytes: $0) }
    }

    private func decode(bytes text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count * 3 / 4)
        var buffer: UInt32 = 0
        var bits = 0
        for character in text {
            let value = values[Int(character)]
            guard value < 64 else { return nil }
            buffer = buffer << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
            }
        }
        guard bits < 6, buffer & (1 << UInt32(bits) - 1) == 0 else { return nil }
        return bytes
    }
}
