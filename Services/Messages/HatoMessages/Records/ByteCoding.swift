/// Appends fixed-size numbers and lengths-before-bytes; all big-endian, so that keys order as their numbers do.
struct ByteEncoder: Sendable {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: UInt8) { bytes.append(value) }

    mutating func append(_ value: UInt32) {
        for shift in stride(from: 24, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func append(_ value: UInt64) {
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    /// A length of 4 bytes, then the bytes.
    mutating func append(counted text: some Collection<UInt8>) {
        append(UInt32(text.count))
        bytes.append(contentsOf: text)
    }

    mutating func append(raw: some Collection<UInt8>) { bytes.append(contentsOf: raw) }
}

/// Reads what `ByteEncoder` wrote. Every step gives nil when the bytes end too early.
struct ByteDecoder: Sendable {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func uint32() -> UInt32? {
        number(bytes: 4).map { UInt32(truncatingIfNeeded: $0) }
    }

    mutating func uint64() -> UInt64? { number(bytes: 8) }

    mutating func counted() -> ArraySlice<UInt8>? {
        guard let count = uint32(), bytes.count - position >= Int(count) else { return nil }
        defer { position += Int(count) }
        return bytes[position..<position + Int(count)]
    }

    /// Everything that is left.
    mutating func rest() -> ArraySlice<UInt8> {
        defer { position = bytes.count }
        return bytes[position...]
    }

    private mutating func number(bytes count: Int) -> UInt64? {
        guard bytes.count - position >= count else { return nil }
        var value: UInt64 = 0
        for _ in 0..<count {
            value = value << 8 | UInt64(bytes[position])
            position += 1
        }
        return value
    }
}
