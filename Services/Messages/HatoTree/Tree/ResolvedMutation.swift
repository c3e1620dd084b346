public import HatoModel
public import HatoRules

/// A mutation with its target nodes.
public struct ResolvedMutation: Sendable {
    /// Behind one reference, since it is copied often.
    private final class Contents: Sendable {
        let mutation: Mutation
        let now: Int64
        let targets: [WriteTarget]
        let reads: [RulesRead]

        init(_ mutation: Mutation, _ now: Int64, _ targets: [WriteTarget], _ reads: [RulesRead]) {
            self.mutation = mutation
            self.now = now
            self.targets = targets
            self.reads = reads
        }
    }

    private let contents: Contents
    /// See `Mutation.hidesStored`.
    public var hidesStored: Bool

    init(mutation: Mutation, now: Int64, targets: [WriteTarget], reads: [RulesRead]) {
        contents = Contents(mutation, now, targets, reads)
        hidesStored = mutation.hidesStored
    }

    var mutation: Mutation { contents.mutation }
    /// Milliseconds since 1970, the single time of the write.
    public var now: Int64 { contents.now }
    var targets: [WriteTarget] { contents.targets }
    /// The stored numbers to which increments were added: the only stored data that resolving has read.
    public var reads: [RulesRead] { contents.reads }

    var isConditional: Bool { contents.mutation.condition != nil }

    /// Whether planning may read the recent writes.
    public var asksHistory: Bool {
        if case .push(_, _, isClientKey: true) = contents.mutation.operation { return true }
        return isConditional
    }

    /// The node of the request; a push writes to a child of it.
    public var path: TreePath { mutation.path }

    /// The nodes that are written, in the order of the request: of an update one for each path. At a priority path the
    /// priority as a leaf.
    public var writtenNodes: [TreeNode] { targets.map(\.node) }

    /// Whether the write appends a child.
    public var isPush: Bool { if case .push = contents.mutation.operation { true } else { false } }

    /// The targets for rules.
    public var rulesTargets: [RulesTarget] { targets.map { RulesTarget(path: $0.path, node: $0.node) } }
}

/// One path of a write with its new node; at a priority path the priority as a leaf.
struct WriteTarget: Sendable {
    var path: TreePath
    var node: TreeNode
    /// Whether the path is expected to be free: it decides which row is read first.
    let isNew: Bool

    init(_ json: JSONValue, at path: TreePath, _ source: some ServerValueSource, isNew: Bool = false) throws {
        self.path = path
        // Apps generate push keys themselves, and write under them with set and update.
        self.isNew = isNew || path.keys.last?.looksPushed == true
        if path.isPriority {
            let priority = try TreePriority.normalized(json: json, at: path, serverValues: source)
            node = priority.map { .leaf($0.leaf) } ?? .empty
        } else {
            node = try TreeNode(json: json, at: path, serverValues: source)
        }
    }
}

extension TreeKey {
    /// Whether it has the form of a current push key.
    fileprivate var looksPushed: Bool { text.utf8.count == 20 && text.utf8.first == UInt8(ascii: "-") }
}
