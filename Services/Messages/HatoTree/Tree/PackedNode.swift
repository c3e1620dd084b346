import HatoModel

/// A node whose children are a few small leaves, stored in one row: most writes to a chat are such nodes, and the work
/// of a write, of a compaction and of a read grows with the number of rows.
///
/// The row has the key of a leaf at the node's path, and is the only row of the node. Its value is the tag, then for
/// each child in order: the key as `TreeKeyCodec` encodes it, the number of bytes of its value (1 byte, or 2 with the
/// high bit set), and the value as `TreeLeafCodec` encodes it. Readers see the rows of the leaves (`TreeRows`). A node
/// is packed only when it is written as a whole; a write to a part of it unpacks it permanently, so that a node that
/// changes piece by piece is never rewritten as a whole.
enum PackedNode {
    /// Distinct from every tag of `TreeLeafCodec`.
    static let tag: UInt8 = 4

    static let childrenMin = 2
    /// Limited because a read of one leaf searches all of them.
    private static let childrenMax = 32
    /// Bytes of the whole value.
    private static let bytesMax = 2_048

    static func isPacked(_ value: Span<UInt8>) -> Bool { value.count > 0 && value[0] == tag }

    /// Appends the value of the row; returns false, without appending, for children that need rows of their own.
    static func append(_ children: TreeChildren, to bytes: inout [UInt8]) -> Bool {
        guard (childrenMin...childrenMax).contains(children.count) else { return false }
        let start = bytes.count
        bytes.append(tag)
        var last = bytes.count..<bytes.count
        let sorted = children.sorted
        for index in sorted.indices {
            guard case .leaf(let leaf, nil) = sorted[index].node,
                bytes.count - start + sorted[index].key.text.utf8.count + leaf.rowByteCount <= bytesMax
            else {
                bytes.removeLast(bytes.count - start)
                return false
            }
            let key = bytes.count
            TreeKeyCodec.append(sorted[index].key, to: &bytes)
            // Scans rely on this order.
            guard bytes[last].lexicographicallyPrecedes(bytes[key...]) else {
                bytes.removeLast(bytes.count - start)
                return false
            }
            last = key..<bytes.count
            append(count: leaf.rowByteCount, to: &bytes)
            TreeLeafCodec.append(leaf, to: &bytes)
        }
        return true
    }

    /// Whether such children may be in one row, whatever the limits were when it was written; the row itself shows
    /// whether they are.
    fileprivate static func mayHold(_ children: TreeChildren) -> Bool {
        children.count >= childrenMin
            && children.allSatisfy { child in
                if case .leaf(_, nil) = child.node { true } else { false }
            }
    }

    private static func append(count: Int, to bytes: inout [UInt8]) {
        if count >= 0x80 { bytes.append(0x80 | UInt8(truncatingIfNeeded: count >> 8)) }
        bytes.append(UInt8(truncatingIfNeeded: count))
    }

    /// The ranges of a leaf in the value of a row.
    struct Leaf {
        var key: Range<Int>
        var value: Range<Int>
    }

    /// The leaf after the one that ends at `end`, nil after the last; `end` starts as 1.
    static func next(in value: Span<UInt8>, after end: inout Int) throws(TreeError) -> Leaf? {
        guard end < value.count else { return nil }
        guard let keyEnd = TreeKeyCodec.endOfKey(in: value, from: end), keyEnd < value.count else { throw damage }
        var start = keyEnd + 1
        var count = Int(value[keyEnd])
        if count >= 0x80 {
            guard start < value.count else { throw damage }
            count = (count & 0x7F) << 8 | Int(value[start])
            start += 1
        }
        guard count > 0, value.count - start >= count else { throw damage }
        let leaf = Leaf(key: end..<keyEnd, value: start..<start + count)
        end = start + count
        return leaf
    }

    static func leaves(in value: Span<UInt8>) throws(TreeError) -> [Leaf] {
        var leaves: [Leaf] = []
        var end = 1
        while let leaf = try next(in: value, after: &end) { leaves.append(leaf) }
        return leaves
    }

    static func children(in value: Span<UInt8>) throws(TreeError) -> [TreeChild] {
        var children: [TreeChild] = []
        children.reserveCapacity(8)
        var end = 1
        while let leaf = try next(in: value, after: &end) {
            guard let key = TreeKeyCodec.decode(value.extracting(leaf.key)) else { throw damage }
            children.append(TreeChild(key: key, node: .leaf(try TreeLeafCodec.decode(value.extracting(leaf.value)))))
        }
        return children
    }

    private static let damage = TreeError.corrupted("a row of several leaves that cannot be read")
}

extension TreeNode {
    /// Whether such a stored node may be one row.
    var canBePacked: Bool {
        if case .object(let children, nil) = self { PackedNode.mayHold(children) } else { false }
    }
}

extension TreeLeaf {
    /// The number of bytes that `TreeLeafCodec` writes.
    fileprivate var rowByteCount: Int {
        switch self {
        case .bool: 1
        case .number: 9
        case .string(let text): 1 + text.utf8.count
        }
    }
}
