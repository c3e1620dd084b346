import HatoModel

/// A path with the bytes of its row's key and the end of each of its keys in them.
struct EncodedPath {
    let path: TreePath
    let key: [UInt8]
    /// `ends[n]` is the length of the key of the ancestor at depth n; the last is the whole length.
    let ends: [Int]

    init(_ path: TreePath, _ codec: TreeKeyCodec) {
        var key: [UInt8] = []
        key.reserveCapacity(codec.prefix.count + 32 * (path.depth + 1))
        key.append(contentsOf: codec.prefix)
        var ends: [Int] = []
        ends.reserveCapacity(path.depth + 1)
        ends.append(key.count)
        for part in path.keys {
            TreeKeyCodec.append(part, to: &key)
            ends.append(key.count)
        }
        self.path = path
        self.key = key
        self.ends = ends
    }

    var upperBound: [UInt8]? { TreeKeyCodec.upperBound(of: key) }

    /// The key of the ancestor at a depth.
    func ancestor(_ depth: Int) -> [UInt8] { Array(key[..<ends[depth]]) }

    /// The bytes of the key below the ancestor at a depth.
    func component(_ depth: Int) -> ArraySlice<UInt8> { key[ends[depth]..<ends[depth + 1]] }

    func upperBound(ofDepth depth: Int) -> [UInt8]? {
        TreeKeyCodec.upperBound(of: Array(key[..<ends[depth]]))
    }

    /// The number of leading keys that a row shares with this path: `path.depth` when the row is at or below it.
    func sharedDepth(with row: Span<UInt8>) -> Int {
        let own = key.span
        let limit = min(own.count, row.count)
        var index = 0
        while index < limit, own[index] == row[index] { index += 1 }
        var depth = path.depth
        while depth > 0, ends[depth] > index { depth -= 1 }
        return depth
    }
}

/// The state at a path before a write.
struct LocatedNode {
    /// The node; empty when it does not exist, nil when it exceeds the size limit.
    var before: TreeNode? = .empty
    /// The number of rows of the node, and their bytes, as far as they were read.
    var rowCount = 0
    var byteCount = 0
    /// Whether all its rows were read; reading stops where it is certain that they are deleted by range.
    var isWhole = true
    /// The depth of the deepest existing node on the path.
    var existedDepth: Int
    /// The depth of the ancestor that is a leaf.
    var leafDepth: Int?
    /// The depth of the ancestor that is stored in one row.
    var packedDepth: Int?
    /// How the node itself is stored, when that is one row.
    var ownRow: OwnRow?
    /// The rows of a leaf that exceeds the size limit.
    var largeLeaf: LeafRows?
    /// Whether the tree is known not to be empty.
    var rootIsThere = false

    enum OwnRow {
        case leaf
        case packed
    }

    struct LeafRows {
        var value: [UInt8]
        var priority: [UInt8]?
    }
}
