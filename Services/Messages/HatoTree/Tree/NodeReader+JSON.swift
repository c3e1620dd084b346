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
        var rows = NodeRowsWriter(base: base, format: format)
        let limit = bytesMax.addingReportingOverflow(writer.count)
        try scan(base) { key, value in
            try rows.append(key, value, to: &writer)
            if !limit.overflow, writer.count > limit.partialValue { throw TreeError.tooBig(bytesMax: bytesMax) }
            return .next
        }
        rows.finish(&writer)
        if !limit.overflow, writer.count > limit.partialValue { throw TreeError.tooBig(bytesMax: bytesMax) }
    }

    /// Writes the node at `path` with `true` for each of its children; a leaf with its value.
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

/// Writes rows in key order as the JSON of their node. It builds nodes only for objects that may be read as arrays:
/// whether they are is known only at their end.
struct NodeRowsWriter {
    private let format: NodeReader.Format
    private var cursor: RowCursor
    /// The number of open objects, including the node itself.
    private var open = 0
    /// The number of keys of the current row that have been written as names.
    private var named = 0
    /// The start of the previous row's value, if that was a leaf: its priority may follow.
    private var leafStart: Int?
    private var isEmpty = true
    /// Builds an object that may be an array, until its rows end.
    private var builder: TreeNodeBuilder?

    init(base: [UInt8], format: NodeReader.Format) {
        self.format = format
        cursor = RowCursor(base: base)
    }

    mutating func append(_ key: Span<UInt8>, _ value: Span<UInt8>, to writer: inout JSONWriter) throws {
        let kept = try cursor.advance(to: key)
        if let depth = builder?.depth {
            if kept >= depth {
                try builder?.append(value, at: cursor, kept: kept)
                return
            }
            closeBuilder(&writer)
        }
        if cursor.isPriority {
            if format == .plain {
                named = min(named, kept)
                return
            }
            if let leafStart, kept == cursor.depth {
                try addPriority(value, toLeafAt: leafStart, of: &writer)
                return
            }
        }
        isEmpty = false
        leafStart = nil
        named = min(named, kept)
        close(downTo: named + 1, &writer)
        guard try openObjects(for: value, &writer) else { return }
        if cursor.isPriority {
            beginObject(&writer)
            writer.member(".priority")
        } else {
            leafStart = writer.count
        }
        try TreeLeafCodec.write(value, to: &writer)
    }

    mutating func finish(_ writer: inout JSONWriter) {
        if builder != nil {
            closeBuilder(&writer)
        } else if isEmpty {
            writer.writeNull()
        }
        close(downTo: 0, &writer)
    }

    /// Opens the objects above the current row and writes their names; returns false when the row went into an object
    /// that may be an array.
    private mutating func openObjects(for value: Span<UInt8>, _ writer: inout JSONWriter) throws -> Bool {
        while named < cursor.depth {
            if open == named {
                if format == .plain, TreeKeyCodec.isArrayIndex(cursor.row.span.extracting(cursor.range(named))) {
                    var builder = TreeNodeBuilder(depth: named)
                    try builder.append(value, at: cursor, kept: named)
                    self.builder = builder
                    return false
                }
                beginObject(&writer)
            }
            try writeName(named, &writer)
            named += 1
        }
        return true
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

    private mutating func beginObject(_ writer: inout JSONWriter) {
        writer.beginObject()
        open += 1
    }

    private mutating func close(downTo count: Int, _ writer: inout JSONWriter) {
        while open > count {
            writer.endObject()
            open -= 1
        }
    }

    private mutating func closeBuilder(_ writer: inout JSONWriter) {
        if let node = builder?.finish() { writer.write(node.plain) }
        builder = nil
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
