/// A path in the tree: the keys from the root, e.g. `/chats/c1/messages`.
///
/// As text, keys are separated by slashes; empty segments are dropped, so `//a///b/` is `/a/b` and `""` is the root.
/// The last segment may be `.priority`: such a path means the priority of the node above it, and `isPriority` is true.
public struct TreePath: Sendable, Hashable {
    /// The keys of the node; for `/a/.priority` these are `["a"]`.
    public private(set) var keys: [TreeKey]
    /// Whether the path means the priority of the node.
    public private(set) var isPriority: Bool

    /// The path `/`.
    public static let root = TreePath(uncheckedKeys: [])

    /// Throws an error that names the wrong key and the rule for keys.
    public init(_ text: String) throws(ArgumentError) {
        guard text.utf8.count <= TreeLimits.pathBytesMax else { throw TreePath.tooLong() }
        var keys: [TreeKey] = []
        keys.reserveCapacity(4)
        var isPriority = false
        let bytes = text.utf8.span
        var start = 0
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != UInt8(ascii: "/") { end += 1 }
            if start < end {
                if isPriority { throw TreePath.misplacedPriority(text) }
                let segment = bytes.extracting(start..<end).withUnsafeBufferPointer {
                    String(decoding: $0, as: UTF8.self)
                }
                if bytes[start] == UInt8(ascii: "."), segment.hasSameBytes(as: TreePath.prioritySegment) {
                    isPriority = true
                } else {
                    keys.append(try TreePath.key(segment, of: text))
                }
            }
            start = end + 1
        }
        try self.init(checkingDepthOf: keys, isPriority: isPriority)
    }

    /// A path of keys from the root down. Throws `ArgumentError` for more than 32 keys or 768 bytes.
    public init(keys: [TreeKey]) throws(ArgumentError) {
        try self.init(checkingDepthOf: keys, isPriority: false)
    }

    /// Takes keys whose number is known to be within the limit.
    package init(uncheckedKeys keys: [TreeKey], isPriority: Bool = false) {
        self.keys = keys
        self.isPriority = isPriority
    }

    private init(checkingDepthOf keys: [TreeKey], isPriority: Bool) throws(ArgumentError) {
        guard keys.count <= TreeLimits.depthMax else {
            throw ArgumentError(
                reason: "too_deep",
                "The path has \(keys.count) keys; \(TreeLimits.depthMax) is the deepest a tree may be, e.g. \"/chats/c1/messages\""
            )
        }
        self.init(uncheckedKeys: keys, isPriority: isPriority)
    }

    private static let prioritySegment = ".priority"

    private static func key(_ segment: String, of text: String) throws(ArgumentError) -> TreeKey {
        do {
            return try TreeKey(segment)
        } catch {
            throw ArgumentError(reason: error.reason, "\(error.message) (in the path \(TreeKey.quoted(text)))")
        }
    }

    private static func tooLong() -> ArgumentError {
        ArgumentError(
            reason: "invalid_path",
            "A path is at most \(TreeLimits.pathBytesMax) bytes of UTF-8, e.g. \"/chats/c1/messages\"")
    }

    private static func misplacedPriority(_ text: String) -> ArgumentError {
        ArgumentError(
            reason: "invalid_path",
            "\".priority\" is only allowed at the end of a path, e.g. \"/a/.priority\"; the path is \(TreeKey.quoted(text))"
        )
    }
}

extension TreePath {
    /// Whether it is the path `/`.
    public var isRoot: Bool { keys.isEmpty && !isPriority }

    /// The number of keys.
    public var depth: Int { keys.count }

    /// The key of the node; nil for the root.
    public var lastKey: TreeKey? { keys.last }

    /// `/a/b`; the root is `/`.
    public var text: String {
        guard !isRoot else { return "/" }
        var text = ""
        for key in keys {
            text += "/"
            text += key.text
        }
        if isPriority { text += "/.priority" }
        return text
    }

    /// The node whose priority this path means, or the path itself.
    public var node: TreePath { TreePath(uncheckedKeys: keys) }

    /// The parent node; nil for the root.
    public var parent: TreePath? {
        if isPriority { return node }
        return keys.isEmpty ? nil : TreePath(uncheckedKeys: Array(keys.dropLast()))
    }

    /// The first `depth` keys.
    public func prefix(_ depth: Int) -> TreePath { TreePath(uncheckedKeys: Array(keys.prefix(depth))) }

    /// The child `key` of this node; throws when it exceeds the maximum depth.
    public func child(_ key: TreeKey) throws(ArgumentError) -> TreePath {
        var keys: [TreeKey] = []
        keys.reserveCapacity(depth + 1)
        keys.append(contentsOf: self.keys)
        keys.append(key)
        return try TreePath(keys: keys)
    }

    /// The path `other` relative to this node. Throws `ArgumentError` beyond 32 keys.
    public func appending(_ other: TreePath) throws(ArgumentError) -> TreePath {
        try TreePath(checkingDepthOf: keys + other.keys, isPriority: other.isPriority)
    }

    /// Whether `other` is this path or below it.
    public func isAtOrAbove(_ other: TreePath) -> Bool {
        if isPriority { return self == other }
        return keys.count <= other.keys.count && sharedDepth(with: other) == keys.count
    }

    /// The number of leading keys that both paths share.
    public func sharedDepth(with other: TreePath) -> Int {
        let limit = min(keys.count, other.keys.count)
        var depth = 0
        while depth < limit, keys[depth] == other.keys[depth] { depth += 1 }
        return depth
    }

    /// This path relative to `ancestor`; nil when `ancestor` is not at or above it.
    public func relative(to ancestor: TreePath) -> TreePath? {
        guard ancestor.isAtOrAbove(self) else { return nil }
        return TreePath(uncheckedKeys: Array(keys.dropFirst(ancestor.keys.count)), isPriority: isPriority)
    }

    /// Refuses a path that ends in `.priority`, for operations on nodes.
    public func requireNode() throws(ArgumentError) {
        guard isPriority else { return }
        throw ArgumentError(
            reason: "invalid_path",
            "The path \(TreeKey.quoted(text)) means a priority; only set, update, remove and get may name one; "
                + "name its node, e.g. \(TreeKey.quoted(node.text))")
    }
}

extension TreePath: CustomStringConvertible {
    public var description: String { text }
}

extension TreePath: FieldText {
    public func write(into writer: inout JSONWriter) {
        writer.beginString()
        if isRoot { writer.appendToString("/") }
        for key in keys {
            writer.appendToString("/")
            writer.appendToString(key.text)
        }
        if isPriority { writer.appendToString("/.priority") }
        writer.endString()
    }
}
