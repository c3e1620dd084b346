public import HatoModel

/// What a listener is told about commits.
public enum ListenerUpdate: Sendable, Hashable {
    /// Nothing it can see has changed.
    case nothing
    /// Changes, in this order.
    case events([ListenerEvent])
    /// Send the whole value anew, as a put of `/`: it has changed as a whole, or too much to tell apart.
    case fresh
}

/// One entry of `messages.event` (protocol §5). Paths are relative to the listener.
public enum ListenerEvent: Sendable, Hashable {
    /// What is at the path now.
    case put(TreePath, TreeNode)
    /// What is at each of these paths now, all at once.
    case patch([(path: TreePath, node: TreeNode)])

    /// The fewest words for some changed places. Priorities stand last: only a node that is there can have one.
    init?(_ unordered: [(path: TreePath, node: TreeNode)]) {
        let places = unordered.filter { !$0.path.isPriority } + unordered.filter(\.path.isPriority)
        switch places.count {
        case 0: return nil
        case 1: self = .put(places[0].path, places[0].node)
        default:
            // The listener's own node and its priority: one put says both.
            if let root = places.firstIndex(where: { $0.path.isRoot }) {
                var node = places[root].node
                for place in places where !place.path.isRoot { node = node.setting(place.node, at: place.path) }
                self = .put(.root, node)
            } else {
                self = .patch(places)
            }
        }
    }

    public static func == (left: ListenerEvent, right: ListenerEvent) -> Bool {
        switch (left, right) {
        case (.put(let path, let node), .put(let otherPath, let otherNode)): path == otherPath && node == otherNode
        case (.patch(let places), .patch(let others)):
            places.elementsEqual(others) { $0.path == $1.path && $0.node == $1.node }
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .put(let path, _): hasher.combine(path)
        case .patch(let places): hasher.combine(places.count)
        }
    }

    /// Writes `{"type", "path", "data"}`, data in export form.
    public func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("type")
        switch self {
        case .put(let path, let node):
            writer.write("put")
            writer.member("path")
            writer.write(path.text)
            writer.member("data")
            writer.write(node.export)
        case .patch(let places):
            writer.write("patch")
            writer.member("path")
            writer.write("/")
            writer.member("data")
            writer.beginObject()
            for place in places {
                writer.member(String(place.path.text.dropFirst()))
                writer.write(place.node.export)
            }
            writer.endObject()
        }
        writer.endObject()
    }
}

extension ListenerUpdate {
    /// What a listener without a query at `path` is told about one commit.
    public init(of changes: [PathChange], at path: TreePath) {
        var places: [(path: TreePath, node: TreeNode)] = []
        for change in changes {
            if let relative = change.path.relative(to: path) {
                guard let after = change.after else {
                    self = .fresh
                    return
                }
                places.append((relative, after))
            } else if let rest = path.relative(to: change.path) {
                guard let after = change.after else {
                    self = .fresh
                    return
                }
                let node = after.node(at: rest)
                // What was too large to keep may have been the same here: then it is told again.
                if node != change.before?.node(at: rest) { places.append((.root, node)) }
            }
        }
        self = ListenerEvent(places).map { .events([$0]) } ?? .nothing
    }
}
