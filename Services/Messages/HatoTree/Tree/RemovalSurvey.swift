import HatoModel

/// Finds out which nodes lose their last child by a write.
struct RemovalSurvey {
    private let reader: any TreeReader
    private let codec: TreeKeyCodec
    /// Keys of removed nodes, in order.
    private let removed: [[UInt8]]
    /// Paths where the write leaves something.
    private let kept: [TreePath]
    /// What is known of nodes by their keys.
    private var remains: [[UInt8]: Bool] = [:]

    /// - Parameter changes: those of nodes, not of priorities.
    init(_ changes: [PathChange], reader: any TreeReader, codec: TreeKeyCodec) {
        self.reader = reader
        self.codec = codec
        let nodes = changes.filter { !$0.path.isPriority }
        removed = nodes.filter { $0.after?.isEmpty == true }.map { codec.key(of: $0.path) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        kept = nodes.filter { $0.after?.isEmpty == false }.map(\.path)
    }

    /// Keys of the nodes above removed ones that have nothing left.
    var vanished: Set<[UInt8]> { Set(remains.filter { !$0.value }.keys) }

    /// The depth of the deepest ancestor of a removed node that still has something; 0 also when the root has not.
    mutating func remainingDepth(above path: TreePath) throws -> Int {
        let place = PlacedPath(path, codec)
        for depth in (0..<path.depth).reversed() {
            let node = Array(place.key[..<place.ends[depth]])
            if let known = remains[node] {
                if known { return depth }
                continue
            }
            let isThere = try hasRemainder(node, path.prefix(depth), without: place)
            remains[node] = isThere
            if isThere { return depth }
        }
        return 0
    }

    private func hasRemainder(_ node: [UInt8], _ path: TreePath, without place: PlacedPath) throws -> Bool {
        if kept.contains(where: { path.isAtOrAbove($0) }) { return true }
        // Behind the removed node first: where old children are removed one by one, the tombstones of the others lie before it.
        if let lower = place.upperBound,
            try findsRow(lower: lower, upper: TreeKeyCodec.upperBound(of: node), reverse: false)
        {
            return true
        }
        return try findsRow(lower: node + [TreeKeyCodec.priorityMark + 1], upper: place.key, reverse: true)
    }

    /// Whether the range has a row that is not removed.
    private func findsRow(lower: [UInt8], upper: [UInt8]?, reverse: Bool) throws -> Bool {
        var found = false
        try reader.scan(lower: lower, upper: upper, reverse: reverse) { row, _ in
            guard let gone = removedNode(above: row.withUnsafeBufferPointer { Array($0) }) else {
                found = true
                return .stop
            }
            if reverse { return row.count == gone.count ? .next : .seek(gone) }
            return TreeKeyCodec.upperBound(of: gone).map { .seek($0) } ?? .stop
        }
        return found
    }

    /// The removed node that a row belongs to: the greatest key of a removed node that is not behind the row, if the row begins with it.
    private func removedNode(above row: [UInt8]) -> [UInt8]? {
        var low = 0
        var high = removed.count
        while low < high {
            let middle = (low + high) / 2
            if row.lexicographicallyPrecedes(removed[middle]) { high = middle } else { low = middle + 1 }
        }
        guard low > 0 else { return nil }
        let candidate = removed[low - 1]
        return row.starts(with: candidate) ? candidate : nil
    }
}
