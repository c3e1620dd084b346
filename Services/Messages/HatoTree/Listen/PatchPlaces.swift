import HatoModel

/// The places that several commits changed, made into one event.
///
/// **Any order.** Who is told may set the members of a patch one by one, in whatever order his JSON reader has them.
/// None lies below another, so only priorities could suffer: a node that loses its last child before it gets a new
/// one goes in between, and its priority with it; and a priority that is set before the first child is that of
/// nothing. So a node that has a priority, but no child that stays there all the time, is told whole.
struct PatchPlaces {
    typealias Place = (path: TreePath, node: TreeNode)

    /// What is told of one node.
    private struct Part {
        /// What is there now, where the node as a whole is told.
        var node: TreeNode?
        var priority: TreeNode?
        var below: [TreeKey: Part] = [:]
        /// Whether something goes, here or below.
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
    ///   - path: where the listener is.
    ///   - nodes: reads the state that is told.
    init(of path: TreePath, reading nodes: NodeReader, bytesMax: Int) {
        self.path = path
        self.nodes = nodes
        self.bytesMax = bytesMax
    }

    /// - Parameter place: as seen from the listener, neither at another nor below it.
    mutating func insert(_ place: Place) {
        whole.insert(place, at: place.path.keys[...])
        count += 1
    }

    /// Throws `TreeError.tooBig` when a node that must be told whole is larger than `bytesMax`.
    func update() throws -> ListenerUpdate {
        // A single place is set at once.
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

    /// Whether a child of the node was there before and stays, whatever is set first.
    private func keepsChild(_ part: Part, at place: TreePath) throws -> Bool {
        var told: [TreeKey] = []
        var hasOther = false
        try nodes.forEachChildKey(of: absolute(place)) { key in
            if part.below[key] == nil { hasOther = true } else { told.append(key) }
            return !hasOther
        }
        if hasOther { return true }
        for key in told {
            // One that is told as a whole may be new.
            guard let child = part.below[key], child.node == nil else { continue }
            // Only its priority has changed.
            if child.below.isEmpty { return true }
            if try keepsChild(child, at: TreePath(uncheckedKeys: place.keys + [key])) { return true }
        }
        return false
    }
}
