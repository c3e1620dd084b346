public import HatoModel

/// Encodes the position of a child in an index as the key of a row, so that the order of bytes is the order of a query
/// (spec realtime-database §3.2, §3.3).
///
/// An index row has no value. Its key is the prefix of the database's indexes, then:
/// - the id of the index in 4 bytes; 0 is the automatic index of priorities
/// - the keys of the collection as `TreeKeyCodec` encodes them, then 01: so the rows of all collections in a node begin
///   with the keys of the node
/// - the sort value: 10 for null, 20 and 30 for false and true, 40 and 8 bytes for a number, 50 and a text, 60 for an
///   object
/// - the child's key.
///
/// A text is its UTF-16 code units, each as one to three bytes of UTF-8 plus 2, so that bytes sort like units; then 00
/// when it is complete. Of a longer text only the first 256 units are written, then 01: such texts sort after the
/// complete text with the same units, and a reader orders them among each other by the tree.
public struct IndexKeyCodec: Sendable, Hashable {
    /// The common prefix of the keys of all index rows.
    public let prefix: [UInt8]

    public init(prefix: [UInt8]) { self.prefix = prefix }

    /// The id of the automatic index of priorities.
    public static let priorities: UInt32 = 0
    /// The maximum number of UTF-16 code units of a text in a row.
    static let textUnitsMax = 256

    static let collectionEnd: UInt8 = 1
    private static let complete: UInt8 = 0
    private static let truncated: UInt8 = 1

    private enum Tag {
        static let null: UInt8 = 0x10
        static let `false`: UInt8 = 0x20
        static let `true`: UInt8 = 0x30
        static let number: UInt8 = 0x40
        static let text: UInt8 = 0x50
        static let object: UInt8 = 0x60
    }

    /// The common prefix of the rows of an index for collections at or below these keys.
    public func prefix(of index: UInt32, under keys: some Sequence<TreeKey> = []) -> [UInt8] {
        var bytes = prefix
        bytes.reserveCapacity(prefix.count + 64)
        withUnsafeBytes(of: index.bigEndian) { bytes.append(contentsOf: $0) }
        for key in keys { TreeKeyCodec.append(key, to: &bytes) }
        return bytes
    }

    /// The common prefix of all rows of one collection.
    public func prefix(of index: UInt32, collection keys: some Sequence<TreeKey>) -> [UInt8] {
        var bytes = prefix(of: index, under: keys)
        bytes.append(Self.collectionEnd)
        return bytes
    }

    // MARK: Sort values

    static func append(_ value: SortValue, to bytes: inout [UInt8]) {
        switch value {
        case .null: bytes.append(Tag.null)
        case .leaf(.bool(false)): bytes.append(Tag.false)
        case .leaf(.bool(true)): bytes.append(Tag.true)
        case .leaf(.number(let number)):
            bytes.append(Tag.number)
            append(number, to: &bytes)
        case .leaf(.string(let text)):
            bytes.append(Tag.text)
            append(text, to: &bytes)
        case .object: bytes.append(Tag.object)
        }
    }

    /// Positive numbers with their sign bit set, negative ones inverted: then the order of bits is that of numbers.
    private static func append(_ number: Double, to bytes: inout [UInt8]) {
        let bits = number.bitPattern
        let ordered = bits >> 63 == 0 ? bits | 1 << 63 : ~bits
        withUnsafeBytes(of: ordered.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        var count = 0
        for unit in text.utf16 {
            if count == textUnitsMax {
                bytes.append(truncated)
                return
            }
            count += 1
            switch unit {
            case 0..<0x80:
                bytes.append(UInt8(unit) + 2)
            case 0x80..<0x800:
                bytes.append(UInt8(0xC0 | unit >> 6) + 2)
                bytes.append(UInt8(0x80 | unit & 0x3F) + 2)
            default:
                bytes.append(UInt8(0xE0 | unit >> 12) + 2)
                bytes.append(UInt8(0x80 | unit >> 6 & 0x3F) + 2)
                bytes.append(UInt8(0x80 | unit & 0x3F) + 2)
            }
        }
        bytes.append(complete)
    }

    /// Whether a row holds the whole value.
    static func isComplete(_ value: SortValue) -> Bool {
        guard case .leaf(.string(let text)) = value else { return true }
        if text.utf8.count <= textUnitsMax { return true }
        return text.utf16.count <= textUnitsMax
    }

    /// The part of a row after the prefix of its collection.
    struct Row {
        /// The sort value; of a truncated text only its beginning.
        var sortKey: SortKey
        var isTruncated: Bool
        /// The end of the sort value in the row.
        var valueEnd: Int
    }

    /// Decodes a row from `start`, the end of its collection's prefix; nil when the bytes are no such row.
    static func decode(_ row: Span<UInt8>, from start: Int) -> Row? {
        guard start < row.count else { return nil }
        var end = start + 1
        var isTruncated = false
        let value: SortValue
        switch row[start] {
        case Tag.null: value = .null
        case Tag.false: value = .leaf(.bool(false))
        case Tag.true: value = .leaf(.bool(true))
        case Tag.object: value = .object
        case Tag.number:
            guard row.count >= end + 8 else { return nil }
            var ordered: UInt64 = 0
            for index in end..<end + 8 { ordered = ordered << 8 | UInt64(row[index]) }
            end += 8
            value = .leaf(.number(Double(bitPattern: ordered >> 63 == 1 ? ordered & ~(1 << 63) : ~ordered)))
        case Tag.text:
            while end < row.count, row[end] > truncated { end += 1 }
            guard end < row.count else { return nil }
            isTruncated = row[end] == truncated
            value = .leaf(.string(text(row.extracting(start + 1..<end))))
            end += 1
        default: return nil
        }
        guard end < row.count, let key = TreeKeyCodec.decode(row.extracting(end..<row.count)) else { return nil }
        return Row(sortKey: SortKey(value, key), isTruncated: isTruncated, valueEnd: end)
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let lead = UInt16(bytes[index] - 2)
            switch lead {
            case 0..<0x80:
                units.append(lead)
                index += 1
            case 0x80..<0xE0:
                guard index + 1 < bytes.count else { return String(decoding: units, as: UTF16.self) }
                units.append((lead & 0x1F) << 6 | UInt16(bytes[index + 1] - 2) & 0x3F)
                index += 2
            default:
                guard index + 2 < bytes.count else { return String(decoding: units, as: UTF16.self) }
                units.append(
                    (lead & 0xF) << 12 | (UInt16(bytes[index + 1] - 2) & 0x3F) << 6
                        | UInt16(bytes[index + 2] - 2) & 0x3F)
                index += 3
            }
        }
        return String(decoding: units, as: UTF16.self)
    }
}

extension IndexKeyCodec {
    /// The row of one child, encoded after the prefix of its collection.
    static func row(_ collection: [UInt8], _ sortKey: SortKey) -> [UInt8] {
        var bytes = collection
        append(sortKey.value, to: &bytes)
        TreeKeyCodec.append(sortKey.key, to: &bytes)
        return bytes
    }

    /// A range of rows with all children in a query's range, and perhaps some more.
    struct Bounds {
        var lower: [UInt8]
        var upper: [UInt8]
        /// False when the range may contain rows that the query does not select: the caller must check each row.
        var isExact: Bool
    }

    /// The rows of a collection between two cuts.
    static func bounds(_ collection: [UInt8], _ query: TreeQuery) -> Bounds {
        var lower = collection
        var upper = TreeKeyCodec.upperBound(of: collection) ?? []
        var isExact = true
        if let start = query.start {
            let key = exactKey(start)
            isExact = isExact && key != nil
            append(start.value, to: &lower)
            switch key ?? .beforeAll {
            case .beforeAll: break
            case .before(let key): TreeKeyCodec.append(key, to: &lower)
            case .after(let key):
                TreeKeyCodec.append(key, to: &lower)
                lower.append(0)
            case .afterAll: lower = TreeKeyCodec.upperBound(of: lower) ?? lower
            }
        }
        if let end = query.end {
            let key = exactKey(end)
            isExact = isExact && key != nil
            upper = collection
            append(end.value, to: &upper)
            switch key ?? .afterAll {
            case .beforeAll: break
            case .before(let key): TreeKeyCodec.append(key, to: &upper)
            case .after(let key):
                TreeKeyCodec.append(key, to: &upper)
                upper.append(0)
            case .afterAll: upper = TreeKeyCodec.upperBound(of: upper) ?? upper
            }
        }
        return Bounds(lower: lower, upper: upper, isExact: isExact)
    }

    /// The cut among the children with its value, if bytes can express it: a truncated text is not enough, and a name
    /// that no key can have may sort differently as bytes.
    private static func exactKey(_ cut: TreeQuery.Cut) -> TreeQuery.KeyCut? {
        guard isComplete(cut.value) else { return nil }
        return switch cut.key {
        case .beforeAll, .afterAll: cut.key
        case .before(let key), .after(let key): TreeKeyCodec.keepsOrder(key) ? cut.key : nil
        }
    }
}

extension TreeKeyCodec {
    /// Whether the bytes of this name sort among those of keys as the name does. Bounds of queries need not be keys:
    /// they may be empty, or have control characters, which the encoding uses itself.
    static func keepsOrder(_ key: TreeKey) -> Bool {
        guard !key.text.isEmpty else { return false }
        let bytes = key.text.utf8.span
        for index in bytes.indices where bytes[index] < 0x20 { return false }
        return true
    }
}
