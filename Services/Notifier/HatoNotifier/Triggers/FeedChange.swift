import HatoModel

/// One change of a database as its feed sends it, for one pattern that it matches.
struct FeedChange: Sendable, Hashable {
    var pattern: String
    /// What the pattern's wildcards stand for.
    var parameters: [String: String]
    var path: String
    var type: Notifier.ChangeType
    /// Export form; null where nothing is.
    var before: JSONValue?
    var after: JSONValue?
    /// The author; nil for administrators and without a credential.
    var uid: String?
    /// `before` and `after` hold the changed children only.
    var isPartial = false
    /// `before` and `after` were cut.
    var isTruncated = false
    /// `after` was read, as it is now.
    var isCompleted = false
    /// Too many nodes below `path` changed to be listed one by one.
    var isMany = false
    /// The author's name in the tree, once it was read.
    var authorName: String?
}

extension FeedChange {
    /// Whether the change holds every child that changed, and only these: then what the whole node was is known from
    /// what it is.
    var tellsWhatBecame: Bool { isPartial && !isTruncated && type == .updated }

    /// The same change of the whole node, which is `node` now: the children that it does not hold are as they were.
    func completed(by node: JSONValue) -> FeedChange {
        var whole = self
        if tellsWhatBecame { whole.before = node.reverted(from: after, to: before) }
        whole.after = node
        whole.isCompleted = true
        return whole
    }

    /// Whether the field is not known: the commit was too big to be sent whole, and what was before cannot be read
    /// any more.
    func lacks(_ field: FieldPath) -> Bool {
        guard isTruncated, field.text(in: self) == nil else { return false }
        return switch field.side {
        case .before: type != .created
        case .after: type != .deleted && !isCompleted
        }
    }
}

extension JSONValue {
    /// This node with the changed children of `new` as `old` has them; either is null when it has none of them.
    fileprivate func reverted(from new: JSONValue?, to old: JSONValue?) -> JSONValue? {
        guard case .object(var node) = self, let new = new?.children, let old = old?.children else { return old }
        for name in (new.members + old.members).map(\.name) {
            let child = (node[name] ?? .null).reverted(from: new[name] ?? .null, to: old[name] ?? .null)
            node[name] = child?.isNull == false ? child : nil
        }
        return node.isEmpty ? nil : .object(node)
    }

    /// Nil for a leaf.
    private var children: JSONObject? { isNull ? [:] : object }
}

/// The changes of one commit.
struct FeedCommit: Sendable, Hashable {
    var version: UInt64
    var epoch: String
    /// Milliseconds since 1970.
    var time: Int64
    var changes: [FeedChange]

    /// About what it takes in memory.
    var memoryBytes: Int { changes.reduce(Self.fixedBytes) { $0 + $1.memoryBytes } }

    private static let fixedBytes = 256
}

extension FeedChange {
    /// Where the author's name is; nil without an author.
    var authorNamePath: TreePath? {
        guard let uid, let key = try? TreeKey(uid) else { return nil }
        return TreePath(uncheckedKeys: [TreeKey(unchecked: "users"), key, TreeKey(unchecked: "name")])
    }

    /// About what it takes in memory.
    var memoryBytes: Int {
        let texts = parameters.reduce(pattern.utf8.count + path.utf8.count + (uid?.utf8.count ?? 0)) {
            $0 + $1.key.utf8.count + $1.value.utf8.count
        }
        return Self.fixedBytes + texts + (before?.memoryBytes ?? 0) + (after?.memoryBytes ?? 0)
    }

    /// Of the structure itself, its row, and the texts that it has always.
    private static let fixedBytes = 1_024
}

extension JSONValue {
    /// About what it takes in memory. A member of an object is held with its name; values of few bytes take as much as
    /// others.
    var memoryBytes: Int {
        switch self {
        case .null, .bool, .number: Self.fixedBytes
        case .string(let text): Self.fixedBytes + text.utf8.count
        case .array(let values): values.reduce(Self.fixedBytes) { $0 + $1.memoryBytes }
        case .object(let object):
            object.members.reduce(Self.fixedBytes) { $0 + Self.fixedBytes + $1.name.utf8.count + $1.value.memoryBytes }
        }
    }

    private static let fixedBytes = 48
}
