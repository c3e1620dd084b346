import HatoModel

/// The first byte of a node in a record; the high bit says that a priority comes first.
private enum NodeTag {
    static let empty: UInt8 = 0
    static let no: UInt8 = 1
    static let yes: UInt8 = 2
    static let number: UInt8 = 3
    static let string: UInt8 = 4
    static let object: UInt8 = 5
    static let hasPriority: UInt8 = 0x80
}

/// Appends the parts of a change record.
struct RecordWriter {
    var bytes: [UInt8] = []

    mutating func write(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func write(_ text: String) {
        let utf8 = text.utf8.span
        write(UInt64(utf8.count))
        utf8.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
    }

    mutating func write(_ node: TreeNode) {
        switch node {
        case .empty:
            bytes.append(NodeTag.empty)
        case .leaf(let leaf, let priority):
            write(leaf, after: priority)
        case .object(let children, let priority):
            write(NodeTag.object, after: priority)
            write(UInt64(children.count))
            let sorted = children.sorted
            for index in sorted.indices {
                write(sorted[index].key.text)
                write(sorted[index].node)
            }
        }
    }

    private mutating func write(_ leaf: TreeLeaf, after priority: TreePriority? = nil) {
        switch leaf {
        case .bool(let value):
            write(value ? NodeTag.yes : NodeTag.no, after: priority)
        case .number(let value):
            write(NodeTag.number, after: priority)
            withUnsafeBytes(of: value.bitPattern.bigEndian) { bytes.append(contentsOf: $0) }
        case .string(let value):
            write(NodeTag.string, after: priority)
            write(value)
        }
    }

    private mutating func write(_ tag: UInt8, after priority: TreePriority?) {
        guard let priority else { return bytes.append(tag) }
        bytes.append(tag | NodeTag.hasPriority)
        write(priority.leaf)
    }
}

/// Reads the parts of a change record; every length is checked against the bytes that are left.
struct RecordReader {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func byte() throws -> UInt8 {
        guard index < bytes.count else { throw RecordReader.tooShort }
        defer { index += 1 }
        return bytes[index]
    }

    mutating func number() throws -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte()
            value |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return value }
            shift += 7
            guard shift < 64 else { throw RecordReader.tooShort }
        }
    }

    /// A number of items that each take at least one byte of the rest, or a depth.
    mutating func count() throws -> Int {
        let value = try number()
        guard value <= UInt64(bytes.count) else { throw RecordReader.tooShort }
        return Int(value)
    }

    mutating func text() throws -> String {
        let length = try count()
        guard length <= bytes.count - index else { throw RecordReader.tooShort }
        defer { index += length }
        return String(decoding: bytes[index..<index + length], as: UTF8.self)
    }

    mutating func node() throws -> TreeNode { try node(depth: 0) }

    private mutating func node(depth: Int) throws -> TreeNode {
        guard depth <= TreeLimits.depthMax else { throw TreeError.corrupted("a change record deeper than a tree") }
        let tag = try byte()
        var priority: TreePriority?
        if tag & NodeTag.hasPriority != 0 { priority = TreePriority(try leaf(byte())) }
        switch tag & ~NodeTag.hasPriority {
        case NodeTag.empty: return .empty
        case NodeTag.object: break
        case let tag: return .leaf(try leaf(tag), priority: priority)
        }
        let count = try count()
        var children: [TreeChild] = []
        children.reserveCapacity(min(count, 1024))
        for _ in 0..<count {
            let key = TreeKey(unchecked: try text())
            children.append(TreeChild(key: key, node: try node(depth: depth + 1)))
        }
        return .object(TreeChildren(sorted: children), priority: priority)
    }

    private mutating func leaf(_ tag: UInt8) throws -> TreeLeaf {
        switch tag {
        case NodeTag.no: return .bool(false)
        case NodeTag.yes: return .bool(true)
        case NodeTag.string: return .string(try text())
        case NodeTag.number:
            var bits: UInt64 = 0
            for _ in 0..<8 { bits = bits << 8 | UInt64(try byte()) }
            return .number(Double(bitPattern: bits))
        default: throw TreeError.corrupted("a change record with a value of tag \(tag)")
        }
    }

    private static let tooShort = TreeError.corrupted("a change record that ends too early")
}
