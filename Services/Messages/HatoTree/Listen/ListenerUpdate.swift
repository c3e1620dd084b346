public import HatoModel

/// What commits mean for a listener.
public enum ListenerUpdate: Sendable, Hashable {
    /// Nothing visible to it has changed.
    case nothing
    /// Changes, in this order.
    case events([ListenerEvent])
    /// Send the whole value again, as a put of `/`: it has changed as a whole, or too much for single changes.
    case fresh
}

/// One entry of `messages.event` (protocol §5). Paths are relative to the listener.
public enum ListenerEvent: Sendable, Hashable {
    /// The current node at the path.
    case put(TreePath, TreeNode)
    /// The current nodes at these paths, applied together.
    case patch([(path: TreePath, node: TreeNode)])

    /// The shortest event for some changed paths. Priorities come last: only an existing node can have one.
    init?(_ unordered: [(path: TreePath, node: TreeNode)]) {
        let entries = unordered.filter { !$0.path.isPriority } + unordered.filter(\.path.isPriority)
        switch entries.count {
        case 0: return nil
        case 1: self = .put(entries[0].path, entries[0].node)
        default:
            // A change of the listener's own node and of its priority is one put.
            if let root = entries.firstIndex(where: { $0.path.isRoot }) {
                var node = entries[root].node
                for entry in entries where !entry.path.isRoot { node = node.setting(entry.node, at: entry.path) }
                self = .put(.root, node)
            } else {
                self = .patch(entries)
            }
        }
    }

    public static func == (left: ListenerEvent, right: ListenerEvent) -> Bool {
        switch (left, right) {
        case (.put(let path, let node), .put(let otherPath, let otherNode)): path == otherPath && node == otherNode
        case (.patch(let entries), .patch(let others)):
            entries.elementsEqual(others) { $0.path == $1.path && $0.node == $1.node }
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .put(let path, _): hasher.combine(path)
        case .patch(let entries): hasher.combine(entries.count)
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
        case .patch(let entries):
            writer.write("patch")
            writer.member("path")
            writer.write("/")
            writer.member("data")
            writer.beginObject()
            for entry in entries {
                writer.member(String(entry.path.text.dropFirst()))
                writer.write(entry.node.export)
            }
            writer.endObject()
        }
        writer.endObject()
    }
}

extension ListenerUpdate {
    /// The update of one commit for a listener without a query at `path`.
    public init(of changes: [PathChange], at path: TreePath) {
        var entries: [(path: TreePath, node: TreeNode)] = []
        for change in changes {
            if let relative = change.path.relative(to: path) {
                guard let after = change.after else {
                    self = .fresh
                    return
                }
                entries.append((relative, after))
            } else if let rest = path.relative(to: change.path) {
                guard let after = change.after else {
                    self = .fresh
                    return
                }
                let node = after.node(at: rest)
                // If the node before was too large to keep, its part here may be equal: then it is sent again.
                if node != change.before?.node(at: rest) { entries.append((.root, node)) }
            }
        }
        self = ListenerEvent(entries).map { .events([$0]) } ?? .nothing
    }
}
