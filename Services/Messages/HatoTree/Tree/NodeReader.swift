public import HatoModel

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Reads nodes of one database from its rows, each with one range scan.
public struct NodeReader {
    let reader: TreeRows
    let codec: TreeKeyCodec

    /// A reader of nodes over the rows that `reader` reads.
    public init(_ reader: any TreeReader, codec: TreeKeyCodec) {
        self.init(TreeRows(reader, codec: codec), codec: codec)
    }

    init(_ rows: TreeRows, codec: TreeKeyCodec) {
        reader = rows
        self.codec = codec
    }

    /// The node at `path` with everything below it; at a priority path, the priority as a leaf.
    ///
    /// - Throws: `TreeError.tooBig` as soon as its rows exceed `bytesMax` bytes.
    public func node(at path: TreePath, bytesMax: Int = .max) throws -> TreeNode {
        var room = Room(bytesMax: bytesMax)
        return try node(at: path, taking: &room)
    }

    /// The shared size limit for reading several nodes.
    struct Room {
        let bytesMax: Int
        private var left: Int

        init(bytesMax: Int) {
            self.bytesMax = bytesMax
            left = bytesMax
        }

        fileprivate mutating func take(_ bytes: Int) throws(TreeError) {
            left -= bytes
            if left < 0 { throw .tooBig(bytesMax: bytesMax) }
        }
    }

    /// The same with a size limit that several reads share.
    func node(at path: TreePath, taking room: inout Room) throws -> TreeNode {
        if path.isPriority { return try priority(at: path.node).map { .leaf($0.leaf) } ?? .empty }
        let base = codec.key(of: path)
        var cursor = RowCursor(base: base)
        var builder = TreeNodeBuilder()
        try scan(base) { key, value in
            try room.take(key.count - base.count + value.count)
            let kept = try cursor.advance(to: key)
            try builder.append(value, at: cursor, kept: kept)
            return .next
        }
        return builder.finish()
    }

    /// The primitive at `path`, without its priority; nil where the node is missing or an object. One look-up.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func leaf(at path: TreePath) throws -> TreeLeaf? {
        guard let value = try reader.get(codec.key(of: path).span) else { return nil }
        return try TreeLeafCodec.decode(value.span)
    }

    /// The priority of the node at `path`; nil when it has none.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func priority(at path: TreePath) throws -> TreePriority? {
        var key = codec.key(of: path)
        key.append(TreeKeyCodec.priorityMark)
        guard let value = try reader.get(key.span) else { return nil }
        return TreePriority(try TreeLeafCodec.decode(value.span))
    }

    /// Whether there is a value at or below `path`.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader.
    public func exists(at path: TreePath) throws -> Bool {
        var found = false
        try scan(codec.key(of: path)) { _, _ in
            found = true
            return .stop
        }
        return found
    }

    /// Visits the keys of the children of `path` in order, after `key` if that is given, and skips their descendants.
    ///
    /// - Throws: `TreeError.corrupted` for rows that cannot be decoded, and the errors of the reader and of `visit`.
    public func forEachChildKey(
        of path: TreePath, after key: TreeKey? = nil, _ visit: (TreeKey) throws -> Bool
    ) throws {
        try forEachChildKey(below: codec.key(of: path), after: key, visit)
    }

    /// How many children a node has whose children are the elements of an array, and how many elements are missing
    /// between them.
    struct ArrayShape {
        var count: Int
        var gaps: Int
    }

    /// The array as which the children below the row key `base` are read; nil when they are an object (spec
    /// realtime-database §2.1, `TreeChildren.arrayCount`). Reads their keys only, and stops behind `countMax`.
    func arrayShape(of base: [UInt8], countMax: Int) throws -> ArrayShape? {
        var (count, greatest, isArray) = (0, -1, true)
        try forEachChildKey(below: base) { key in
            guard let index = KeyOrder.arrayIndex(key.text) else {
                isArray = false
                return false
            }
            count += 1
            greatest = max(greatest, index)
            return count <= countMax
        }
        guard isArray, greatest < 2 * count || count > countMax else { return nil }
        return ArrayShape(count: count, gaps: max(0, greatest + 1 - count))
    }

    private func forEachChildKey(
        below base: [UInt8], after key: TreeKey? = nil, _ visit: (TreeKey) throws -> Bool
    ) throws {
        var lower = base
        lower.append(TreeKeyCodec.priorityMark + 1)
        if let key {
            lower = base
            TreeKeyCodec.append(key, to: &lower)
            lower = TreeKeyCodec.upperBound(of: lower) ?? lower
        }
        var child: [UInt8] = []
        var passed = 0
        try reader.scan(lower: lower, upper: TreeKeyCodec.upperBound(of: base), reverse: false) { row, _ in
            if !child.isEmpty, row.begins(with: child.span) {
                passed += 1
                guard passed >= NodeReader.rowsPassedMax else { return .next }
                return TreeKeyCodec.upperBound(of: child).map { .seek($0) } ?? .stop
            }
            guard let end = TreeKeyCodec.endOfKey(in: row, from: base.count),
                let key = TreeKeyCodec.decode(row.extracting(base.count..<end))
            else { throw TreeError.corrupted("a row whose key cannot be read") }
            guard try visit(key) else { return .stop }
            child.removeAll(keepingCapacity: true)
            row.extracting(0..<end).withUnsafeBufferPointer { child.append(contentsOf: $0) }
            passed = 0
            return .next
        }
    }

    /// The number of a child's rows that are stepped over before a seek skips the rest: a seek costs as much as some
    /// ten steps (measured on RocksDB: 2.3 and 0.15 µs).
    static let rowsPassedMax = 8

    func scan(_ base: [UInt8], _ visit: (Span<UInt8>, Span<UInt8>) throws -> TreeScanStep) throws {
        try reader.scan(lower: base, upper: TreeKeyCodec.upperBound(of: base), reverse: false, visit)
    }
}

extension Span<UInt8> {
    func begins(with prefix: Span<UInt8>) -> Bool {
        guard prefix.count <= count else { return false }
        // Adjacent keys of a scan differ at the end.
        guard prefix.count > 0, self[prefix.count - 1] == prefix[prefix.count - 1] else { return prefix.count == 0 }
        return compareShared(with: prefix) == 0
    }

    /// The order of the bytes up to the end of the shorter one: negative, zero or positive.
    func compareShared(with other: Span<UInt8>) -> Int32 {
        withUnsafeBytes { mine in
            other.withUnsafeBytes { theirs in
                let shared = Swift.min(mine.count, theirs.count)
                guard shared > 0, let mine = mine.baseAddress, let theirs = theirs.baseAddress else { return 0 }
                return memcmp(mine, theirs, shared)
            }
        }
    }
}
