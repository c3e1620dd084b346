import HatoModel

/// What a commit of one database did, as followers, resuming listeners and the notifier's feed read it later.
///
/// The bytes: a format byte, then numbers as LEB128 and texts as their length and UTF-8. A reader refuses formats it
/// does not know; a writer always writes the newest.
public struct ChangeRecord: Sendable, Hashable {
    /// Nodes are kept complete up to this many bytes in one commit; what is beyond is left out
    /// (`PathChange.isTruncated`).
    public static let nodeBytesMax = 1024 * 1024

    public var version: UInt64
    /// Milliseconds since 1970, equal to the timestamps of the write.
    public var time: Int64
    /// Who wrote; nil for an administrator and for nobody.
    public var uid: String?
    public var database: String
    public var changes: [PathChange]

    public init(version: UInt64, time: Int64, uid: String?, database: String, changes: [PathChange]) {
        self.version = version
        self.time = time
        self.uid = uid
        self.database = database
        self.changes = changes
    }
}

extension ChangeRecord {
    static let format: UInt8 = 1

    private enum Flags {
        static let priority: UInt8 = 1
        static let before: UInt8 = 2
        static let after: UInt8 = 4
        static let replacedLeaf: UInt8 = 8
    }

    public var encoded: [UInt8] {
        var writer = RecordWriter()
        writer.bytes.reserveCapacity(256)
        writer.bytes.append(ChangeRecord.format)
        writer.write(version)
        writer.write(UInt64(bitPattern: time))
        writer.write(uid == nil ? 0 : 1 as UInt64)
        if let uid { writer.write(uid) }
        writer.write(database)
        writer.write(UInt64(changes.count))
        var nodeBytesLeft = ChangeRecord.nodeBytesMax
        for change in changes { ChangeRecord.write(change, to: &writer, &nodeBytesLeft) }
        return writer.bytes
    }

    private static func write(_ change: PathChange, to writer: inout RecordWriter, _ nodeBytesLeft: inout Int) {
        let place = writer.bytes.count
        var flags: UInt8 = change.path.isPriority ? Flags.priority : 0
        writer.bytes.append(flags)
        writer.write(UInt64(change.path.depth))
        for key in change.path.keys { writer.write(key.text) }
        writer.write(UInt64(change.existedDepth))
        writer.write(UInt64(change.existsDepth))
        if let depth = change.replacedLeafDepth {
            flags |= Flags.replacedLeaf
            writer.write(UInt64(depth))
        }
        for (node, flag) in [(change.before, Flags.before), (change.after, Flags.after)] {
            guard let node else { continue }
            let start = writer.bytes.count
            writer.write(node)
            let size = writer.bytes.count - start
            if size <= nodeBytesLeft {
                nodeBytesLeft -= size
                flags |= flag
            } else {
                writer.bytes.removeLast(size)
            }
        }
        writer.bytes[place] = flags
    }

    /// Throws `TreeError.corrupted` for bytes that are no record, or one of a newer format.
    public init(decoding bytes: [UInt8]) throws {
        var reader = RecordReader(bytes)
        let format = try reader.byte()
        guard format == ChangeRecord.format else { throw TreeError.corrupted("a change record of format \(format)") }
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
        let before = flags & Flags.before != 0 ? try reader.node() : nil
        let after = flags & Flags.after != 0 ? try reader.node() : nil
        return PathChange(path: path, before: before, after: after, depths: depths, replacedLeafDepth: leafDepth)
    }
}
