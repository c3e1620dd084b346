public import HatoModel

/// The changes of one commit of one database, for followers, resuming listeners and the notifier's feed.
///
/// The bytes: a format byte, then numbers as LEB128 and texts as their length and UTF-8. A reader refuses unknown
/// formats; a writer always writes the newest. Format 1 had no skeletons, format 2 no standing nodes.
public struct ChangeRecord: Sendable, Hashable {
    /// Nodes are kept complete up to this many bytes of keys and values in one commit; of the others only a skeleton is
    /// kept (`PathChange.isTruncated`).
    public static let nodeBytesMax = 1024 * 1024

    /// The version of the commit.
    public var version: UInt64
    /// Milliseconds since 1970, equal to the timestamps of the write.
    public var time: Int64
    /// The author; nil for an administrator and for a caller without credential.
    public var uid: String?
    /// The database that changed.
    public var database: String
    /// In the form of `cut`.
    public var changes: [PathChange]

    public init(version: UInt64, time: Int64, uid: String?, database: String, changes: [PathChange]) {
        self.version = version
        self.time = time
        self.uid = uid
        self.database = database
        self.changes = changes
    }
}

// MARK: - Cutting

extension ChangeRecord {
    /// The changes as stored in a record and sent to followers, live or later: nodes beyond `nodeBytesMax` are replaced
    /// by their skeletons, in the order of the changes. A node that fits is kept, whatever did not fit before it.
    ///
    /// - Parameter byteCount: their byte count, if it is known.
    public static func cut(_ changes: [PathChange], of byteCount: Int? = nil) -> [PathChange] {
        byteCount ?? self.byteCount(of: changes) <= nodeBytesMax ? changes : cutEach(changes)
    }

    /// Bytes of the keys and values of their nodes.
    public static func byteCount(of changes: [PathChange]) -> Int {
        changes.indices.reduce(0) { count, index in
            count + (changes[index].before?.byteCount ?? 0) + (changes[index].after?.byteCount ?? 0)
                + changes[index].standingByteCount
        }
    }

    private static func cutEach(_ changes: [PathChange]) -> [PathChange] {
        var left = nodeBytesMax
        var budget = SkeletonBudget()
        func fits(_ node: TreeNode) -> Bool {
            let size = node.byteCount
            guard size <= left else { return false }
            left -= size
            return true
        }
        return changes.map { change in
            var change = change
            if let before = change.before, !fits(before) {
                change.beforeSkeleton = NodeSkeleton(of: before, &budget)
                change.before = nil
            }
            if let after = change.after, !fits(after) {
                change.afterSkeleton = NodeSkeleton(of: after, &budget)
                change.after = nil
            }
            if change.standingByteCount > left { change.standing = nil }
            left -= change.standingByteCount
            return change
        }
    }
}

extension PathChange {
    /// A node whose priority changed is stored twice, before and after.
    fileprivate var standingByteCount: Int { (standing?.byteCount ?? 0) * (path.isPriority ? 2 : 1) }
}

extension TreeNode {
    /// Bytes of its keys and values, about as many as a record needs for them; 0 for an empty node.
    public var byteCount: Int {
        switch self {
        case .empty: 0
        case .leaf(let leaf, let priority): leaf.byteCount + (priority?.leaf.byteCount ?? 0)
        case .object(let children, let priority):
            children.byteCount + (priority?.leaf.byteCount ?? 0)
        }
    }
}

extension TreeChildren {
    fileprivate var byteCount: Int {
        // A span copies no child.
        let children = sorted.span
        var count = 0
        for index in children.indices {
            count += children[index].key.text.utf8.count + 1 + children[index].node.byteCount
        }
        return count
    }
}

extension TreeLeaf {
    fileprivate var byteCount: Int {
        switch self {
        case .bool: 1
        case .number: 9
        case .string(let text): text.utf8.count + 2
        }
    }
}

// MARK: - Bytes

extension ChangeRecord {
    static let format: UInt8 = 3

    private enum Flags {
        static let priority: UInt8 = 1
        static let before: UInt8 = 2
        static let after: UInt8 = 4
        static let replacedLeaf: UInt8 = 8
        static let beforeSkeleton: UInt8 = 16
        static let afterSkeleton: UInt8 = 32
        static let standing: UInt8 = 64
        /// Readers that do not know it lose nothing else, so it needed no new format.
        static let rootCameOrWent: UInt8 = 128
    }

    /// The record as it is stored.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        encode(ChangeRecord.encoded(changes), to: &bytes)
        return bytes
    }

    /// Appends the same bytes.
    ///
    /// - Parameter changes: the result of `encoded(_:)` for these changes.
    public func encode(_ changes: [UInt8], to bytes: inout [UInt8]) {
        bytes.reserveCapacity(bytes.count + changes.count + 64)
        var writer = RecordWriter(bytes: bytes)
        bytes = []
        writer.bytes.append(ChangeRecord.format)
        writer.write(version)
        writer.write(UInt64(bitPattern: time))
        writer.write(uid == nil ? 0 : 1 as UInt64)
        if let uid { writer.write(uid) }
        writer.write(database)
        writer.bytes.append(contentsOf: changes)
        bytes = writer.bytes
    }

    /// The part of a record that does not depend on the time of the commit.
    public static func encoded(_ changes: [PathChange]) -> [UInt8] {
        var writer = RecordWriter()
        writer.bytes.reserveCapacity(256)
        writer.write(UInt64(changes.count))
        for index in changes.indices { write(changes[index], to: &writer) }
        return writer.bytes
    }

    private static func write(_ change: PathChange, to writer: inout RecordWriter) {
        let offset = writer.bytes.count
        var flags: UInt8 = change.path.isPriority ? Flags.priority : 0
        if change.rootCameOrWent { flags |= Flags.rootCameOrWent }
        writer.bytes.append(flags)
        writer.write(UInt64(change.path.depth))
        for key in change.path.keys { writer.write(key.text) }
        writer.write(UInt64(change.existedDepth))
        writer.write(UInt64(change.existsDepth))
        if let depth = change.replacedLeafDepth {
            flags |= Flags.replacedLeaf
            writer.write(UInt64(depth))
        }
        func write(_ node: TreeNode?, _ flag: UInt8) {
            guard let node else { return }
            writer.write(node)
            flags |= flag
        }
        write(change.before, Flags.before)
        write(change.after, Flags.after)
        write(change.beforeSkeleton?.tree, Flags.beforeSkeleton)
        write(change.afterSkeleton?.tree, Flags.afterSkeleton)
        write(change.standing, Flags.standing)
        writer.bytes[offset] = flags
    }

    /// Throws `TreeError.corrupted` for bytes that are no record, or have a newer format.
    public init(decoding bytes: [UInt8]) throws {
        var reader = RecordReader(bytes)
        let format = try reader.byte()
        guard (1...ChangeRecord.format).contains(format) else {
            throw TreeError.corrupted("a change record of format \(format)")
        }
        version = try reader.number()
        time = Int64(bitPattern: try reader.number())
        uid = try reader.number() == 0 ? nil : reader.text()
        database = try reader.text()
        let count = try reader.count()
        changes = []
        changes.reserveCapacity(min(count, 1024))
        for _ in 0..<count { changes.append(try ChangeRecord.change(&reader)) }
    }

    private static func change(_ reader: inout RecordReader) throws -> PathChange {
        let flags = try reader.byte()
        var keys: [TreeKey] = []
        for _ in 0..<(try reader.count()) { keys.append(TreeKey(unchecked: try reader.text())) }
        let path = TreePath(uncheckedKeys: keys, isPriority: flags & Flags.priority != 0)
        let depths = (try reader.count(), try reader.count())
        let leafDepth = flags & Flags.replacedLeaf != 0 ? try reader.count() : nil
        func node(_ flag: UInt8) throws -> TreeNode? { flags & flag != 0 ? try reader.node() : nil }
        var change = PathChange(
            path: path, before: try node(Flags.before), after: try node(Flags.after), depths: depths,
            replacedLeafDepth: leafDepth)
        if let tree = try node(Flags.beforeSkeleton) { change.beforeSkeleton = NodeSkeleton(tree: tree) }
        if let tree = try node(Flags.afterSkeleton) { change.afterSkeleton = NodeSkeleton(tree: tree) }
        if let standing = try node(Flags.standing) { change.standing = standing }
        change.rootCameOrWent = flags & Flags.rootCameOrWent != 0
        return change
    }
}
