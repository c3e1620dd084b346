import HatoModel

/// A snapshot in a rule: a node of the tree before or after the write, none of it read yet.
struct RulesSnapshot {
    var isAfter: Bool
    var keys: [TreeKey]
    /// The node itself, where the write determines it; the keys are then ignored.
    var node: TreeNode?
    /// The depth of the first key that no node can have; nothing exists at or below it.
    private var missingDepth = Int.max

    init(isAfter: Bool, keys: [TreeKey]) {
        self.isAfter = isAfter
        self.keys = keys
    }

    /// A node that the write determines.
    init(_ node: TreeNode) {
        isAfter = true
        keys = []
        self.node = node
    }

    var isMissing: Bool { keys.count >= missingDepth }

    var path: TreePath { TreePath(uncheckedKeys: keys) }

    mutating func descend(_ key: TreeKey, isLegal: Bool = true) {
        if let node {
            self.node = isLegal ? node.child(key) : .empty
            return
        }
        keys.append(key)
        if !isLegal || keys.count > TreeLimits.depthMax { missingDepth = min(missingDepth, keys.count) }
    }

    /// Follows a path as `child()` does; returns false when the path has `.` or `..` in it.
    mutating func descend(along text: String) -> Bool {
        if !text.isEmpty, !text.utf8.contains(UInt8(ascii: "/")), text != ".", text != ".." {
            descend(TreeKey(unchecked: text), isLegal: TreeKey.problem(text) == nil)
            return true
        }
        guard let parts = RulesPath(text) else { return false }
        for part in parts.keys { descend(part.key, isLegal: part.isLegal) }
        return true
    }

    /// Returns false at the root.
    mutating func ascend() -> Bool {
        guard !keys.isEmpty else { return false }
        keys.removeLast()
        if keys.count < missingDepth { missingDepth = .max }
        return true
    }
}

/// The path argument of `child()` and `hasChild()`: keys with characters that keys never have do not exist, which is no
/// error (spec §9.4).
struct RulesPath: Sendable {
    struct Part: Sendable {
        var key: TreeKey
        var isLegal: Bool
    }

    var keys: [Part] = []

    /// nil when a segment is `.` or `..`.
    init?(_ text: String) {
        let bytes = text.utf8.span
        keys.reserveCapacity(4)
        var start = 0
        while start < bytes.count {
            var stop = start
            while stop < bytes.count, bytes[stop] != UInt8(ascii: "/") { stop += 1 }
            if start < stop {
                let segment = bytes.extracting(start..<stop).withUnsafeBufferPointer {
                    String(decoding: $0, as: UTF8.self)
                }
                if segment == "." || segment == ".." { return nil }
                keys.append(Part(key: TreeKey(unchecked: segment), isLegal: TreeKey.problem(segment) == nil))
            }
            start = stop + 1
        }
    }
}
