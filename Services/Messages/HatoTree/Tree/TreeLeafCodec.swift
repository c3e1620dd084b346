public import HatoModel

/// Encodes a primitive as the value of a row: a tag, then nothing for a boolean, 8 bytes (big-endian IEEE 754) for a
/// number, UTF-8 for a string.
public enum TreeLeafCodec {
    static let falseTag: UInt8 = 0
    static let trueTag: UInt8 = 1
    static let numberTag: UInt8 = 2
    static let stringTag: UInt8 = 3

    /// Appends the stored form of a leaf.
    public static func append(_ leaf: TreeLeaf, to bytes: inout [UInt8]) {
        switch leaf {
        case .bool(let value):
            bytes.append(value ? trueTag : falseTag)
        case .number(let value):
            bytes.append(numberTag)
            withUnsafeBytes(of: value.bitPattern.bigEndian) { bytes.append(contentsOf: $0) }
        case .string(let value):
            bytes.append(stringTag)
            value.utf8.span.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        }
    }

    /// The stored form of a leaf.
    public static func encode(_ leaf: TreeLeaf) -> [UInt8] {
        var bytes: [UInt8] = []
        append(leaf, to: &bytes)
        return bytes
    }

    /// Throws `TreeError.corrupted` for bytes that `append` never writes.
    public static func decode(_ bytes: Span<UInt8>) throws(TreeError) -> TreeLeaf {
        guard bytes.count > 0 else { throw TreeError.corrupted("a row without a value") }
        switch bytes[0] {
        case falseTag where bytes.count == 1: return .bool(false)
        case trueTag where bytes.count == 1: return .bool(true)
        case numberTag where bytes.count == 9: return .number(number(bytes))
        case stringTag:
            return .string(
                bytes.extracting(1..<bytes.count).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
        default: throw TreeError.corrupted("a row whose value has the tag \(bytes[0]) and \(bytes.count) bytes")
        }
    }

    /// Writes the primitive as JSON, without building a string first.
    /// Throws `TreeError` for bytes that are no primitive.
    public static func write(_ bytes: Span<UInt8>, to writer: inout JSONWriter) throws(TreeError) {
        if bytes.count > 0, bytes[0] == stringTag {
            writer.write(utf8: bytes.extracting(1..<bytes.count))
            return
        }
        switch try decode(bytes) {
        case .bool(let value): writer.write(value)
        case .number(let value): writer.write(value)
        case .string(let value): writer.write(value)
        }
    }

    private static func number(_ bytes: Span<UInt8>) -> Double {
        var bits: UInt64 = 0
        for index in 1...8 { bits = bits << 8 | UInt64(bytes[index]) }
        return Double(bitPattern: bits)
    }
}
