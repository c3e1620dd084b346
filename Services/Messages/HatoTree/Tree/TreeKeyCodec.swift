public import HatoModel

/// Encodes paths as the keys of rows, so that the order of bytes is the order of keys (spec realtime-database §3.1),
/// and decodes them.
///
/// A row's key is the prefix of its database, then for each key of the path:
/// - an integer-like key: 02, the value plus 2^31 in 4 bytes, the number of characters beyond the shortest spelling (1
///   byte, or 2 with the high bit set), and for such a longer spelling of zero 00 (with a minus) or 01;
/// - any other key: its UTF-8, supplementary characters as two surrogates of 3 bytes (so bytes sort as UTF-16 does),
///   then 00.
///
/// A leaf's row ends there. The row of a node's priority has 01 after the node's path. Keys contain no control
/// characters, so a node's own row comes first, then its priority, its integer-like children, its other children; and
/// all rows that begin with a node's path belong to the node.
public struct TreeKeyCodec: Sendable, Hashable {
    /// The prefix of every row of the database; no other database's prefix begins with it.
    public let prefix: [UInt8]

    /// - Precondition: The prefix is not empty.
    public init(prefix: [UInt8]) {
        precondition(!prefix.isEmpty, "a database needs a prefix of its own")
        self.prefix = prefix
    }

    static let priorityMark: UInt8 = 1
    static let integerMark: UInt8 = 2
    static let terminator: UInt8 = 0

    /// The key of the row at `path`, which is also the prefix of all rows below it.
    public func key(of path: TreePath) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(prefix.count + path.keys.reduce(8) { $0 + $1.text.utf8.count + 4 })
        bytes.append(contentsOf: prefix)
        for key in path.keys { TreeKeyCodec.append(key, to: &bytes) }
        if path.isPriority { bytes.append(TreeKeyCodec.priorityMark) }
        return bytes
    }

    /// The first key after every key that begins with `prefix`; nil when there is none.
    public static func upperBound(of prefix: [UInt8]) -> [UInt8]? {
        var bound = prefix
        while let last = bound.last {
            if last < 0xFF {
                bound[bound.count - 1] = last + 1
                return bound
            }
            bound.removeLast()
        }
        return nil
    }

    /// The path of a row of this database; nil when the bytes are not a valid key.
    public func path(of row: Span<UInt8>) -> TreePath? {
        guard row.count >= prefix.count else { return nil }
        var keys: [TreeKey] = []
        var start = prefix.count
        while start < row.count {
            if row[start] == TreeKeyCodec.priorityMark {
                return start == row.count - 1 ? TreePath(uncheckedKeys: keys, isPriority: true) : nil
            }
            guard let end = TreeKeyCodec.endOfKey(in: row, from: start),
                let key = TreeKeyCodec.decode(row.extracting(start..<end))
            else { return nil }
            keys.append(key)
            start = end
        }
        return TreePath(uncheckedKeys: keys)
    }

    // MARK: One key

    /// Appends one key of a path.
    public static func append(_ key: TreeKey, to bytes: inout [UInt8]) {
        let text = key.text.utf8.span
        if let value = KeyOrder.integer(text) {
            append(value, spelledWith: text, to: &bytes)
            return
        }
        var hasSupplementary = false
        for index in text.indices where text[index] >= 0xF0 { hasSupplementary = true }
        if hasSupplementary {
            appendAsSurrogates(text, to: &bytes)
        } else {
            text.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        }
        bytes.append(terminator)
    }

    /// The end of the key that begins at `start`; nil when the row ends before it.
    public static func endOfKey(in row: Span<UInt8>, from start: Int) -> Int? {
        guard row[start] == integerMark else {
            var index = start
            while index < row.count {
                if row[index] == terminator { return index + 1 }
                index += 1
            }
            return nil
        }
        var end = start + 6
        guard end <= row.count else { return nil }
        let excess = row[start + 5]
        if excess != 0, isZero(row, at: start + 1) { end += 1 }
        if excess & 0x80 != 0 { end += 1 }
        return end <= row.count ? end : nil
    }

    /// Decodes one key as `append` encoded it, including its end.
    public static func decode(_ bytes: Span<UInt8>) -> TreeKey? {
        guard bytes.count > 1 else { return nil }
        if bytes[0] == integerMark { return decodeInteger(bytes) }
        let text = bytes.extracting(0..<bytes.count - 1)
        guard isPlainText(bytes) else { return TreeKey(unchecked: decodeSurrogates(text)) }
        return TreeKey(unchecked: text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
    }

    /// Whether the key's bytes are the shortest spelling of an integer from 0: the index of an array.
    static func isArrayIndex(_ bytes: Span<UInt8>) -> Bool {
        bytes[0] == integerMark && bytes[1] >= 0x80 && bytes[5] == 0
    }

    /// Whether the key's bytes, without the last one, are its text.
    static func isPlainText(_ bytes: Span<UInt8>) -> Bool {
        guard bytes[0] != integerMark else { return false }
        // Most bytes are ASCII; only the byte after ED indicates a surrogate.
        for index in 0..<max(0, bytes.count - 1) where bytes[index] == 0xED && bytes[index + 1] >= 0xA0 { return false }
        return true
    }

    // MARK: Integer-like keys

    private static func append(_ value: Int32, spelledWith text: Span<UInt8>, to bytes: inout [UInt8]) {
        let biased = UInt32(bitPattern: value) ^ 0x8000_0000
        bytes.append(integerMark)
        withUnsafeBytes(of: biased.bigEndian) { bytes.append(contentsOf: $0) }
        let excess = text.count - shortestCount(value)
        if excess >= 0x80 { bytes.append(0x80 | UInt8(truncatingIfNeeded: excess >> 8)) }
        bytes.append(UInt8(truncatingIfNeeded: excess))
        if excess > 0, value == 0 { bytes.append(text[0] == UInt8(ascii: "-") ? 0 : 1) }
    }

    private static func decodeInteger(_ bytes: Span<UInt8>) -> TreeKey? {
        guard bytes.count >= 6 else { return nil }
        var biased: UInt32 = 0
        for index in 1...4 { biased = biased << 8 | UInt32(bytes[index]) }
        let value = Int32(bitPattern: biased ^ 0x8000_0000)
        var excess = Int(bytes[5])
        if excess == 0 { return TreeKey(unchecked: String(value)) }
        if excess >= 0x80, bytes.count > 6 { excess = (excess & 0x7F) << 8 | Int(bytes[6]) }
        var isNegative = value < 0
        if value == 0, bytes[bytes.count - 1] == 0 {
            isNegative = true
            excess -= 1
        }
        // A damaged row may have a negative length.
        guard excess >= 0 else { return nil }
        return TreeKey(
            unchecked: (isNegative ? "-" : "") + String(repeating: "0", count: excess) + String(value.magnitude))
    }

    private static func shortestCount(_ value: Int32) -> Int {
        var count = value < 0 ? 2 : 1
        var rest = value.magnitude
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        return count
    }

    private static func isZero(_ row: Span<UInt8>, at start: Int) -> Bool {
        row[start] == 0x80 && row[start + 1] == 0 && row[start + 2] == 0 && row[start + 3] == 0
    }

    // MARK: Supplementary characters

    private static func appendAsSurrogates(_ text: Span<UInt8>, to bytes: inout [UInt8]) {
        var index = 0
        while index < text.count {
            guard text[index] >= 0xF0, index + 3 < text.count else {
                bytes.append(text[index])
                index += 1
                continue
            }
            let scalar =
                UInt32(text[index] & 0x07) << 18 | UInt32(text[index + 1] & 0x3F) << 12
                | UInt32(text[index + 2] & 0x3F) << 6 | UInt32(text[index + 3] & 0x3F)
            let offset = scalar - 0x10000
            appendSurrogate(0xD800 + offset >> 10, to: &bytes)
            appendSurrogate(0xDC00 + offset & 0x3FF, to: &bytes)
            index += 4
        }
    }

    private static func appendSurrogate(_ unit: UInt32, to bytes: inout [UInt8]) {
        bytes.append(0xED)
        bytes.append(UInt8(0x80 | unit >> 6 & 0x3F))
        bytes.append(UInt8(0x80 | unit & 0x3F))
    }

    private static func decodeSurrogates(_ text: Span<UInt8>) -> String {
        var units: [UInt8] = []
        units.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            guard text[index] == 0xED, index + 5 < text.count, text[index + 1] >= 0xA0 else {
                units.append(text[index])
                index += 1
                continue
            }
            let high = UInt32(text[index + 1] & 0x0F) << 6 | UInt32(text[index + 2] & 0x3F)
            let low = UInt32(text[index + 4] & 0x0F) << 6 | UInt32(text[index + 5] & 0x3F)
            let scalar = 0x10000 + high << 10 + low
            units.append(UInt8(0xF0 | scalar >> 18))
            units.append(UInt8(0x80 | scalar >> 12 & 0x3F))
            units.append(UInt8(0x80 | scalar >> 6 & 0x3F))
            units.append(UInt8(0x80 | scalar & 0x3F))
            index += 6
        }
        return String(decoding: units, as: UTF8.self)
    }
}
