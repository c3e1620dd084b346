import HatoModel

/// Combines the paths that several commits changed into one event.
///
/// **Any order.** A client may apply the members of a patch one by one, in the order of its JSON reader. No path is
/// below another, so only priorities could be lost: a node that loses its last child before it gets a new one vanishes
/// in between, and its priority with it; and a priority that is set before the first child has no node. So a node that
/// has a priority, but no child that exists all the time, is sent whole.
struct PatchBuilder {
    typealias Place = (path: TreePath, node: TreeNode)

    /// The parts of one node to send.
    private struct Part {
        /// The current node, where it is sent whole.
        var node: TreeNode?
        var priority: TreeNode?
        var below: [TreeKey: Part] = [:]
        /// Whether something is removed, here or below.
        var hasRemoval = false

        mutating func insert(_ place: Place, at keys: ArraySlice<TreeKey>) {
            if place.node.isEmpty, !place.path.isPriority { hasRemoval = true }
            guard let key = keys.first else {
                if place.path.isPriority { priority = place.node } else { node = place.node }
                return
            }
            below[key, default: Part()].insert(place, at: keys.dropFirst())
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

    /// - Parameter place: relative to the listener, neither at another nor below it.
    mutating func insert(_ place: Place) {
        whole.insert(place, at: place.path.keys[...])
        count += 1
    }

    /// Throws `TreeError.tooBig` when a node that must be sent whole is larger than `bytesMax`.
    func update() throws -> ListenerUpdate {
        // A single path is set in one step.
        if count > 1, try couldLosePriority(whole, at: .root) { return .fresh }
        let told = try places(in: whole, at: .root)
        return ListenerEvent(told).map { .events([$0]) } ?? .nothing
    }

    private func places(in part: Part, at place: TreePath) throws -> [Place] {
        if let node = part.node { return [(path: place, node: node)] }
        var places: [Place] = []
        if let priority = part.priority {
            places.append((path: TreePath(uncheckedKeys: place.keys, isPriority: true), node: priority))
        }
        for (key, child) in part.below.sorted(by: { $0.key < $1.key }) {
            let childPlace = TreePath(uncheckedKeys: place.keys + [key])
            if count > 1, try couldLosePriority(child, at: childPlace) {
                places.append((path: childPlace, node: try nodes.node(at: absolute(childPlace), bytesMax: bytesMax)))
            } else {
                places += try self.places(in: child, at: childPlace)
            }
        }
        return places
    }

    private func absolute(_ place: TreePath) -> TreePath { TreePath(uncheckedKeys: path.keys + place.keys) }

    private func couldLosePriority(_ part: Part, at place: TreePath) throws -> Bool {
        guard part.node == nil, !part.below.isEmpty, part.hasRemoval || part.priority != nil else { return false }
        guard try nodes.priority(at: absolute(place)) != nil else { return false }
        return try !keepsChild(part, at: place)
    }

    /// Whether a child of the node existed before and stays, in whatever order members are applied.
    private func keepsChild(_ part: Part, at place: TreePath) throws -> Bool {
        var told: [TreeKey] = []
        var hasOther = false
        try nodes.forEachChildKey(of: absolute(place)) { key in
            if part.below[key] == nil { hasOther = true } else { told.append(key) }
            return !hasOther
        }
        if hasOther { return true }
        for key in told {
            // A child that is sent whole may be new.
            guard let child = part.below[key], child.node == nil else { continue }
            // Only its priority has changed.
            if child.below.isEmpty { return true }
            if try keepsChild(child, at: TreePath(uncheckedKeys: place.keys + [key])) { return true }
        }
        return false
    }
}
