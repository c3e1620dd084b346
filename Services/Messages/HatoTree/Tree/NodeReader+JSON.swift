public import HatoModel

extension NodeReader {
    /// The JSON format of a node (spec realtime-database §2.1).
    public enum Format: Sendable, Hashable {
        /// Values only; objects whose keys are the indexes of an array as arrays.
        case plain
        /// With `.priority` and `.value`, never with arrays.
        case export
    }

    /// Writes the node at `path` as one JSON value, directly from its rows; null when it does not exist.
    ///
    /// - Throws: `TreeError.tooBig` as soon as more than `bytesMax` bytes are written.
    public func write(
        _ path: TreePath, _ format: Format, to writer: inout JSONWriter, bytesMax: Int = .max
    ) throws {
        if path.isPriority {
            writer.write(try node(at: path).plain)
            return
        }
        let base = codec.key(of: path)
        let limit = JSONLimit(bytesMax: bytesMax, after: writer.count)
        var rows = NodeRowsWriter(self, base: base, format: format, limit: limit)
        try reader.scanNode(base) { key, value in
            try rows.append(key, value, to: &writer)
            return .next
        }
        try rows.finish(&writer)
    }

    /// Writes the node at `path` with `true` for each of its children; a leaf with its value.
    ///
    /// - Throws: `TreeError.tooBig` when the JSON exceeds `bytesMax` bytes, `TreeError.corrupted` for rows that
    ///   cannot be decoded, and the errors of the reader.
    public func writeShallow(_ path: TreePath, to writer: inout JSONWriter, bytesMax: Int = .max) throws {
        if try path.isPriority || leaf(at: path) != nil {
            writer.write(try node(at: path).plain)
            return
        }
        let start = writer.count
        var isEmpty = true
        try forEachChildKey(of: path) { key in
            if isEmpty { writer.beginObject() }
            isEmpty = false
            writer.member(key.text)
            writer.write(true)
            if writer.count - start > bytesMax { throw TreeError.tooBig(bytesMax: bytesMax) }
            return true
        }
        if isEmpty { writer.writeNull() } else { writer.endObject() }
    }
}

/// The limit of the JSON of one result, in a writer that may hold something already.
struct JSONLimit {
    let bytesMax: Int
    private let end: Int

    init(bytesMax: Int, after count: Int) {
        self.bytesMax = bytesMax
        let (end, isEndless) = count.addingReportingOverflow(bytesMax)
        self.end = isEndless ? .max : end
    }

    func left(after count: Int) -> Int { end - count }

    func check(_ writer: JSONWriter) throws(TreeError) {
        if writer.count > end { throw .tooBig(bytesMax: bytesMax) }
    }
}

/// Writes rows in key order as the JSON of their node, and holds none of them. Whether an object is read as an array is
/// decided by the keys of its children, which are read for that before the first of them is written.
struct NodeRowsWriter {
    private enum Container {
        case object
        /// With the index of the element that comes next.
        case array(next: Int)
    }

    private let nodes: NodeReader
    private let format: NodeReader.Format
    private let limit: JSONLimit
    private var cursor: RowCursor
    /// The objects and arrays that are open, the node itself first.
    private var open: [Container] = []
    /// The number of keys of the current row that have been written as names or reached as elements.
    private var named = 0
    /// The start of the previous row's value, if that was a leaf: its priority may follow.
    private var leafStart: Int?
    private var isEmpty = true

    init(_ nodes: NodeReader, base: [UInt8], format: NodeReader.Format, limit: JSONLimit) {
        self.nodes = nodes
        self.format = format
        self.limit = limit
        cursor = RowCursor(base: base)
    }

    /// Throws `TreeError.tooBig` as soon as the limit is exceeded, or will be.
    mutating func append(_ key: Span<UInt8>, _ value: Span<UInt8>, to writer: inout JSONWriter) throws {
        let kept = try cursor.advance(to: key)
        if cursor.isPriority {
            if format == .plain {
                named = min(named, kept)
                return
            }
            if let leafStart, kept == cursor.depth {
                try addPriority(value, toLeafAt: leafStart, of: &writer)
                return try limit.check(writer)
            }
        }
        isEmpty = false
        leafStart = nil
        named = min(named, kept)
        close(downTo: named + 1, &writer)
        try openContainers(&writer)
        if cursor.isPriority {
            writer.beginObject()
            open.append(.object)
            writer.member(".priority")
        } else {
            leafStart = writer.count
        }
        try TreeLeafCodec.write(value, to: &writer)
        try limit.check(writer)
    }

    mutating func finish(_ writer: inout JSONWriter) throws {
        if isEmpty { writer.writeNull() }
        close(downTo: 0, &writer)
        try limit.check(writer)
    }

    /// Begins another node after `finish`, and keeps the buffers: allocating them costs as much as writing a small one.
    mutating func restart(base: [UInt8]) {
        cursor.restart(base: base)
        named = 0
        leafStart = nil
        isEmpty = true
    }

    /// Opens the objects and arrays above the current row and writes the names of its keys.
    private mutating func openContainers(_ writer: inout JSONWriter) throws {
        while named < cursor.depth {
            if open.count == named {
                if try isArray(writer.count) {
                    writer.beginArray()
                    open.append(.array(next: 0))
                } else {
                    writer.beginObject()
                    open.append(.object)
                }
            }
            if case .array(let next) = open[named] {
                try beginElement(from: next, &writer)
            } else {
                try writeName(named, &writer)
            }
            named += 1
        }
    }

    /// Whether the node above the current row's key number `named`, its first child, is read as an array.
    private func isArray(_ written: Int) throws -> Bool {
        let key = cursor.range(named)
        guard format == .plain, TreeKeyCodec.isArrayIndex(cursor.row.span.extracting(key)) else { return false }
        // Of `[1,null,…`: two bytes for an element, five for a null.
        let left = limit.left(after: written)
        guard let shape = try nodes.arrayShape(of: Array(cursor.row[..<key.lowerBound]), countMax: left / 2) else {
            return false
        }
        guard shape.count <= left / 2, shape.gaps <= (left - shape.count * 2) / 5 else {
            throw TreeError.tooBig(bytesMax: limit.bytesMax)
        }
        return true
    }

    private mutating func beginElement(from next: Int, _ writer: inout JSONWriter) throws {
        guard let key = TreeKeyCodec.decode(cursor.row.span.extracting(cursor.range(named))),
            let index = KeyOrder.arrayIndex(key.text), index >= next
        else { throw TreeError.corrupted("a row whose key cannot be read") }
        for _ in next..<index { writer.writeNull() }
        open[named] = .array(next: index + 1)
    }

    private func writeName(_ index: Int, _ writer: inout JSONWriter) throws {
        let bytes = cursor.row.span.extracting(cursor.range(index))
        if TreeKeyCodec.isPlainText(bytes) {
            writer.member(utf8: bytes.extracting(0..<bytes.count - 1))
        } else if let key = TreeKeyCodec.decode(bytes) {
            writer.member(key.text)
        } else {
            throw TreeError.corrupted("a row whose key cannot be read")
        }
    }

    private mutating func close(downTo count: Int, _ writer: inout JSONWriter) {
        while open.count > count {
            if case .array = open.removeLast() { writer.endArray() } else { writer.endObject() }
        }
    }

    /// Replaces the leaf just written by `{".value": …, ".priority": …}`.
    private func addPriority(_ priority: Span<UInt8>, toLeafAt start: Int, of writer: inout JSONWriter) throws {
        let value = Array(writer.bytes[start...])
        writer.truncate(to: start, valueFollows: true)
        writer.beginObject()
        writer.member(".value")
        writer.write(encoded: value)
        writer.member(".priority")
        try TreeLeafCodec.write(priority, to: &writer)
        writer.endObject()
    }
}
