public import HatoModel

/// What a listener without a query has not been told yet, because its socket was full: the places that changed, none
/// below another. When it drains, what is there by then is one event.
public struct MissedChanges: Sendable, Hashable {
    /// More places than this become the whole value.
    public static let placesMax = 256

    private let path: TreePath
    private var places: Set<TreePath> = []
    /// Whether nothing less than the whole value will do.
    public private(set) var isWhole = false

    /// - Parameter path: where the listener is.
    public init(of path: TreePath) { self.path = path }

    /// Whether nothing was missed.
    public var isEmpty: Bool { places.isEmpty && !isWhole }

    /// Adds the paths of changes; too many become everything.
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

    /// What either has missed.
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

    /// What to tell from the newest state.
    ///
    /// - Throws: `TreeError.tooBig` when the changed places together are larger than `bytesMax`.
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
