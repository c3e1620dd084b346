public import HatoModel

/// The changed paths that a listener without a query was not sent. Their current nodes are sent as one event.
public struct MissedPaths: Sendable {
    private let path: TreePath
    /// Nil: everything may have changed.
    let changed: Set<TreePath>?

    /// Everything may have changed.
    public static let everything = MissedPaths(of: .root, nil)

    /// - Parameters:
    ///   - path: the path of the listener.
    ///   - changed: at or below it; nil: everything may have changed.
    init(of path: TreePath, _ changed: Set<TreePath>?) {
        self.path = path
        self.changed = changed
    }

    /// Whether the whole value must be sent.
    public var isWhole: Bool { changed == nil }

    /// Whether nothing was missed.
    public var isEmpty: Bool { changed?.isEmpty ?? false }

    /// The update from the newest state.
    ///
    /// - Throws: `TreeError.tooBig` when the changed nodes together are larger than `bytesMax`.
    public func update(reading nodes: NodeReader, bytesMax: Int = .max) throws -> ListenerUpdate {
        guard let changed else { return .fresh }
        var patch = PatchBuilder(of: path, reading: nodes, bytesMax: bytesMax)
        for place in changed where !isBelowAnother(place, changed) {
            let node = try nodes.node(at: place, bytesMax: bytesMax)
            patch.insert((path: place.relative(to: path) ?? .root, node: node))
        }
        return try patch.update()
    }

    private func isBelowAnother(_ place: TreePath, _ changed: Set<TreePath>) -> Bool {
        let depth = place.isPriority ? place.depth : place.depth - 1
        guard depth >= path.depth else { return false }
        return (path.depth...depth).contains { changed.contains(place.prefix($0)) }
    }
}
