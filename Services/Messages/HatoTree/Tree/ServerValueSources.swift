import HatoModel
import HatoRules

/// Server values for a node at a path.
protocol PathServerValueSource: ServerValueSource {
    /// The same for the node at `path`.
    func at(_ path: TreePath) -> Self
}

/// Server values from the time of the write alone.
struct TimestampSource: PathServerValueSource {
    struct NeedsStoredNumber: Error {}

    let now: Int64

    func at(_: TreePath) -> TimestampSource { self }

    func number(for value: ServerValue, at _: ServerValueLocation) throws -> Double {
        guard case .timestamp = value else { throw NeedsStoredNumber() }
        return Double(now)
    }
}

/// Server values from the stored tree and the time of the write.
struct StoredNumberSource: PathServerValueSource {
    /// The stored numbers that were read; belongs to one resolution, on its thread.
    final class ReadLog {
        var reads: [RulesRead] = []
    }

    let readLog = ReadLog()
    let reader: any TreeReader
    let codec: TreeKeyCodec
    var base: TreePath
    let now: Int64

    func at(_ path: TreePath) -> StoredNumberSource {
        var copy = self
        copy.base = path
        return copy
    }

    func number(for value: ServerValue, at location: ServerValueLocation) throws -> Double {
        switch value {
        case .timestamp: return Double(now)
        case .increment(let amount):
            let path = TreePath(uncheckedKeys: base.keys + location.keys)
            let nodes = NodeReader(reader, codec: codec)
            readLog.reads.append(RulesRead(path: path, aspect: location.isPriority ? .priority : .value))
            let stored = location.isPriority ? try nodes.priority(at: path)?.leaf : try nodes.leaf(at: path)
            if case .number(let number)? = stored { return number + amount }
            return amount
        }
    }
}

/// Distinguishes a repeated push from one whose key is taken.
struct EarlierPush {
    var value: JSONValue
    var hidesStored: Bool
    /// For `hidesStored`; what it has of a push is small.
    var history: (any ChangeHistory)?

    /// Whether `value` equals the earlier push; server values count with their values then.
    ///
    /// - Parameters:
    ///   - target: the push now. Numbers have one size, so the earlier one has its size.
    ///   - stored: reads the stored node, and throws `TreeError.tooBig` when its rows have more bytes than that.
    func isSame(as target: WriteTarget, stored: (_ bytesMax: Int) throws -> TreeNode) throws -> Bool {
        let earlier: TreeNode?
        do {
            earlier =
                try hidesStored
                ? history?.node(pushedAt: target.path, byteCount: target.node.byteCount)
                : stored(target.node.rowBytesMax)
        } catch TreeError.tooBig {
            // The pushed value has no such rows.
            return false
        }
        guard let earlier else { return false }
        return try WriteTarget(value, at: target.path, EarlierNumberSource(earlier: earlier)).node == earlier
    }
}

extension TreeNode {
    /// At least the bytes of the rows that this node has in a store, each with its path below the node.
    var rowBytesMax: Int { rowBytes(below: 0) }

    private func rowBytes(below pathBytes: Int) -> Int {
        // A mark and an end, or the value of an integer-like key; a priority has a row of its own.
        let priorityBytes = priority.map { pathBytes + 16 + 2 * ($0.leaf.json.string?.utf8.count ?? 0) } ?? 0
        switch self {
        case .empty: return 0
        case .leaf(let leaf, _): return priorityBytes + pathBytes + 16 + 2 * (leaf.json.string?.utf8.count ?? 0)
        case .object(let children, _):
            return children.reduce(priorityBytes) {
                $0 + $1.node.rowBytes(below: pathBytes + 16 + 2 * $1.key.text.utf8.count)
            }
        }
    }
}

/// Server values as resolved by an earlier attempt of the same push.
struct EarlierNumberSource: ServerValueSource {
    let earlier: TreeNode

    func number(for _: ServerValue, at location: ServerValueLocation) throws -> Double {
        let path = TreePath(uncheckedKeys: location.keys, isPriority: location.isPriority)
        if case .number(let number)? = earlier.node(at: path).leaf { return number }
        // There was no number, so the nodes differ whatever this returns.
        return 0
    }
}
