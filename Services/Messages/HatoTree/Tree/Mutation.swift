public import HatoModel

/// A requested write: values still as JSON, server values unresolved.
public struct Mutation: Sendable {
    /// What a write does.
    public enum Operation: Sendable {
        /// Replaces the node with its priority; null removes it. At a path that ends in `.priority`, sets only that.
        case set(JSONValue)
        /// Sets several nodes below the path at once; names are relative paths, none at or above another.
        case update(JSONObject)
        /// Adds a child. With a key made by the client, the same push again changes nothing.
        case push(JSONValue, key: PushKey, isClientKey: Bool)
    }

    /// The precondition of the write. Its result reveals what is stored: the caller of the planner has verified that
    /// the writer may read the node.
    public enum Condition: Sendable, Hashable {
        /// The node's etag: `SimpleHash.etag`.
        case etag(String)
        /// Nothing at, above or below the path was written after this version.
        case version(UInt64)
    }

    /// The path of the write.
    public var path: TreePath
    /// The operation at the path.
    public var operation: Operation
    /// The precondition; nil: none.
    public var condition: Condition?
    /// Whether the writer has no read access to the node: then no response may depend on what is stored there. A push
    /// with the client's key is then a repetition when it equals the writer's earlier push in the history, instead of
    /// the stored node. (A writer without read access cannot use a condition.)
    public var hidesStored = false
    /// The limit for hashing a stored node for the condition: a larger one is `TreeError.tooBig`.
    public var hashedBytesMax = WritePlanner.hashedBytesMax
    /// The limit for the rows of the stored nodes that its plan in its turn replaces: it looks at no further path
    /// (`TooLargeForTurn`). A single path is always planned, since what that takes is bounded.
    public var rowsInTurnMax = Int.max

    /// Whether the response shows what was written.
    public var showsWritten = false

    public init(_ operation: Operation, at path: TreePath, if condition: Condition? = nil) {
        self.path = path
        self.operation = operation
        self.condition = condition
    }

    /// Replaces the node at `path`.
    public static func set(_ value: JSONValue, at path: TreePath, if condition: Condition? = nil) -> Mutation {
        Mutation(.set(value), at: path, if: condition)
    }

    /// Removes the node at `path`.
    public static func remove(at path: TreePath, if condition: Condition? = nil) -> Mutation {
        Mutation(.set(.null), at: path, if: condition)
    }

    /// Replaces several nodes below `path`.
    public static func update(_ values: JSONObject, at path: TreePath) -> Mutation {
        Mutation(.update(values), at: path)
    }

    /// Appends a child with a key that sorts by time.
    public static func push(_ value: JSONValue, at path: TreePath, key: PushKey, isClientKey: Bool = false) -> Mutation
    {
        Mutation(.push(value, key: key, isClientKey: isClientKey), at: path)
    }

    /// Sets the priority of the node at `path`.
    public static func setPriority(_ priority: JSONValue, at path: TreePath) -> Mutation {
        Mutation(.set(priority), at: TreePath(uncheckedKeys: path.keys, isPriority: true))
    }
}

extension Mutation {
    /// Whether executing it twice has the same effect as once (`RPCRequest.isIdempotent` of its request).
    public var isIdempotent: Bool {
        if condition != nil { return true }
        switch operation {
        case .set(let value): return !value.holdsIncrement
        case .update(let values): return !values.holdsIncrement
        case .push(_, key: _, let isClientKey): return isClientKey
        }
    }
}

/// The result of planning a write: rows to apply and changes to record.
public struct WritePlan: Sendable {
    /// Rows of the tree and of its indexes.
    public var rows: RowBatch
    /// The changed paths, in the order of the request.
    public var changes: [PathChange]
    /// The single time of the write, in milliseconds since 1970.
    public var time: Int64
    /// The etag of the written node, when the write had an etag as its condition.
    public var etag: String?
    /// The nodes that are one row before the write and several after it.
    var unpacked: [TreePath] = []

    /// Whether nothing changes, so that there is nothing to commit.
    public var isEmpty: Bool { changes.isEmpty }
}

/// The recent writes; read only for `Mutation.Condition.version` and `Mutation.hidesStored`.
public protocol ChangeHistory {
    /// Whether a commit after `version` wrote at, above or below `path`; true also when that is no longer known.
    func wasWritten(_ path: TreePath, after version: UInt64) throws -> Bool
    /// The node that the writer itself put at `path` when it was empty; nil when there was no such recent write, also
    /// when its node certainly has another `byteCount`.
    func node(pushedAt path: TreePath, byteCount: Int) throws -> TreeNode?
}
