import HatoModel

/// Combines the paths that several commits changed into one event.
///
/// **Any order.** A client may apply the members of a patch one by one, in the order of its JSON reader. No path is
/// below another, so only priorities could be lost: a node that loses its last child before it gets a new one vanishes
/// in between, and its priority with it; and a priority that is set before the first child has no node. So a node that
/// has a priority, but no child that exists all the time, is sent whole.
struct PatchBuilder {
    typealias Entry = (path: TreePath, node: TreeNode)

    /// The parts of one node to send.
    private struct Part {
        /// The current node, where it is sent whole.
        var node: TreeNode?
        var priority: TreeNode?
        var below: [TreeKey: Part] = [:]
        /// Whether something is removed, here or below.
        var hasRemoval = false

        mutating func insert(_ entry: Entry, at keys: ArraySlice<TreeKey>) {
            if entry.node.isEmpty, !entry.path.isPriority { hasRemoval = true }
            guard let key = keys.first else {
                if entry.path.isPriority { priority = entry.node } else { node = entry.node }
                return
            }
            below[key, default: Part()].insert(entry, at: keys.dropFirst())
        }
    }

    private let path: TreePath
    private let nodes: NodeReader
    private let bytesMax: Int
    private var whole = Part()
    private var count = 0

    /// - Parameters:
    ///   - path: the listener's path.
    ///   - nodes: reads the state to send.
    init(of path: TreePath, reading nodes: NodeReader, bytesMax: Int) {
        self.path = path
        self.nodes = nodes
        self.bytesMax = bytesMax
    }

    /// - Parameter entry: relative to the listener, neither at another nor below it.
    mutating func insert(_ entry: Entry) {
        whole.insert(entry, at: entry.path.keys[...])
        count += 1
    }

    /// Throws `TreeError.tooBig` when a node that must be sent whole is larger than `bytesMax`.
    func update() throws -> ListenerUpdate {
        // A single path is set in one step.
        if count > 1, try couldLosePriority(whole, at: .root) { return .fresh }
        let entries = try entries(in: whole, at: .root)
        return ListenerEvent(entries).map { .events([$0]) } ?? .nothing
    }

    private func entries(in part: Part, at relative: TreePath) throws -> [Entry] {
        if let node = part.node { return [(path: relative, node: node)] }
        var entries: [Entry] = []
        if let priority = part.priority {
            entries.append((path: TreePath(uncheckedKeys: relative.keys, isPriority: true), node: priority))
        }
        for (key, child) in part.below.sorted(by: { $0.key < $1.key }) {
            let childPath = TreePath(uncheckedKeys: relative.keys + [key])
            if count > 1, try couldLosePriority(child, at: childPath) {
                entries.append((path: childPath, node: try nodes.node(at: absolute(childPath), bytesMax: bytesMax)))
            } else {
                entries += try self.entries(in: child, at: childPath)
            }
        }
        return entries
    }

    private func absolute(_ relative: TreePath) -> TreePath { TreePath(uncheckedKeys: path.keys + relative.keys) }

    private func couldLosePriority(_ part: Part, at relative: TreePath) throws -> Bool {
        guard part.node == nil, !part.below.isEmpty, part.hasRemoval || part.priority != nil else { return false }
        guard try nodes.priority(at: absolute(relative)) != nil else { return false }
        return try !keepsChild(part, at: relative)
    }

    /// Whether a child of the node existed before and stays, in whatever order members are applied.
    private func keepsChild(_ part: Part, at relative: TreePath) throws -> Bool {
        var entries: [TreeKey] = []
        var hasOther = false
        try nodes.forEachChildKey(of: absolute(relative)) { key in
            if part.below[key] == nil { hasOther = true } else { entries.append(key) }
            return !hasOther
        }
        if hasOther { return true }
        for key in entries {
            // A child that is sent whole may be new.
            guard let child = part.below[key], child.node == nil else { continue }
            // Only its priority has changed.
            if child.below.isEmpty { return true }
            if try keepsChild(child, at: TreePath(uncheckedKeys: relative.keys + [key])) { return true }
        }
        return false
    }
}
