public import HatoModel

/// The changed paths that a listener without a query has not been sent, because its socket was full; none is below
/// another. When the socket drains, their current nodes are sent as one event.
public struct MissedChanges: Sendable, Hashable {
    /// The maximum number of paths; beyond it the whole value is sent.
    public static let placesMax = 256

    private let path: TreePath
    private var places: Set<TreePath> = []
    /// Whether the whole value must be sent.
    public private(set) var isWhole = false

    /// - Parameter path: the listener's path.
    public init(of path: TreePath) { self.path = path }

    /// Whether nothing was missed.
    public var isEmpty: Bool { places.isEmpty && !isWhole }

    /// Adds the paths of changes; beyond `placesMax` everything counts as changed.
    public mutating func add(_ changes: [PathChange]) {
        if isWhole { return }
        for change in changes {
            let settled = change.settledPath
            if settled.isAtOrAbove(path) {
                addWhole()
            } else if path.isAtOrAbove(settled) {
                add(settled)
            }
            if isWhole { return }
        }
    }

    /// Adds the changes that another one has missed.
    public mutating func formUnion(_ other: MissedChanges) {
        if other.isWhole { addWhole() }
        for place in other.places where !isWhole { add(place) }
    }

    /// Notes that everything may have changed.
    public mutating func addWhole() {
        isWhole = true
        places = []
    }

    private mutating func add(_ place: TreePath) {
        if places.contains(where: { $0.isAtOrAbove(place) }) { return }
        places = places.filter { !place.isAtOrAbove($0) }
        places.insert(place)
        if places.count > Self.placesMax { addWhole() }
    }

    /// The update from the newest state.
    ///
    /// - Throws: `TreeError.tooBig` when the changed nodes together are larger than `bytesMax`.
    public func update(reading nodes: NodeReader, bytesMax: Int = .max) throws -> ListenerUpdate {
        if isWhole { return .fresh }
        var changed = PatchPlaces(of: path, reading: nodes, bytesMax: bytesMax)
        for place in places {
            let node = try nodes.node(at: place, bytesMax: bytesMax)
            changed.insert((path: place.relative(to: path) ?? .root, node: node))
        }
        return try changed.update()
    }
}
