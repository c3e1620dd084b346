import HatoModel

/// The paths of rows that are visited in key order, as text relative to their common node: `/a/b`, `/a/.priority`, and
/// `/` for the node itself. A key that two rows share is decoded once.
public struct RowPaths {
    private var cursor: RowCursor
    /// `/a/b` without the suffix of a priority, and the end of each key in it.
    private var keys: [UInt8] = []
    private var ends: [Int] = []

    /// UTF-8 of the path of the current row.
    public private(set) var text: [UInt8] = []

    private static let prioritySegment = Array("/.priority".utf8)

    /// - Parameter base: the key of the node.
    public init(base: [UInt8]) { cursor = RowCursor(base: base) }

    /// Whether the current row is the priority of a node.
    public var isPriority: Bool { cursor.isPriority }

    /// Moves to a row of the node. Throws `TreeError.corrupted` for a key that cannot be read.
    public mutating func advance(to key: Span<UInt8>) throws {
        let kept = try cursor.advance(to: key)
        ends.removeLast(ends.count - kept)
        keys.removeLast(keys.count - (ends.last ?? 0))
        let row = cursor.row
        for index in kept..<cursor.depth {
            guard let part = TreeKeyCodec.decode(row.span.extracting(cursor.range(index))) else {
                throw TreeError.corrupted("a row whose key cannot be read")
            }
            keys.append(UInt8(ascii: "/"))
            keys.append(contentsOf: part.text.utf8)
            ends.append(keys.count)
        }
        text.removeAll(keepingCapacity: true)
        text.append(contentsOf: keys)
        if cursor.isPriority { text.append(contentsOf: Self.prioritySegment) }
        if text.isEmpty { text.append(UInt8(ascii: "/")) }
    }
}
