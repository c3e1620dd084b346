public import HatoModel

/// A write as it was asked for: values still as JSON, server values unresolved.
public struct Mutation: Sendable {
    /// What a write does.
    public enum Operation: Sendable {
        /// Replaces the node with its priority; null removes it. At a path that ends in `.priority`, sets only that.
        case set(JSONValue)
        /// Sets several places below the path at once; names are relative paths, none at or above another.
        case update(JSONObject)
        /// Adds a child. With a key made by the client, the same push again changes nothing.
        case push(JSONValue, key: PushKey, isClientKey: Bool)
    }

    /// What must hold for the write to happen. Whether it does tells what is stored: who plans the write has made
    /// sure that the writer may read the place.
    public enum Condition: Sendable, Hashable {
        /// The node's etag: `SimpleHash.etag`.
        case etag(String)
        /// Nothing at, above or below the path was written after this version.
        case version(UInt64)
    }

    /// The path it is about.
    public var path: TreePath
    /// What it does there.
    public var operation: Operation
    /// What must hold before it is done; nil: nothing.
    public var condition: Condition?
    /// Whether the writer may not read the place: then no answer may depend on what is stored there. A push with the
    /// client's key is then a repetition when it is the same as what the history says he pushed before, instead of the
    /// same as what is stored. (Who may not read a place may not have a condition on it.)
    public var hidesStored = false
    /// A stored node that is larger is not hashed for the condition: `TreeError.tooBig`.
    public var hashedBytesMax = WritePlanner.hashedBytesMax

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
    /// Whether doing it twice leaves what doing it once leaves (`RPCRequest.isIdempotent` of the request it came from).
    public var isIdempotent: Bool {
        if condition != nil { return true }
        switch operation {
        case .set(let value): return !value.holdsIncrement
        case .update(let values): return !values.holdsIncrement
        case .push(_, key: _, let isClientKey): return isClientKey
        }
    }
}

/// What a planned write does: apply the rows, record the changes.
public struct WritePlan: Sendable {
    /// Rows of the tree and of its indexes.
    public var rows: RowBatch
    /// Places that differ after the write, in the order of the request.
    public var changes: [PathChange]
    /// The one time of the write, in milliseconds since 1970.
    public var time: Int64
    /// The etag of the written node, when the write had an etag as its condition.
    public var etag: String?

    /// Whether nothing changes, so that there is nothing to commit.
    public var isEmpty: Bool { changes.isEmpty }
}

/// Knows what was written lately; asked for `Mutation.Condition.version` and `Mutation.hidesStored` only.
public protocol ChangeHistory {
    /// Whether a commit after `version` wrote at, above or below `path`; true also when that is no longer known.
    func wasWritten(_ path: TreePath, after version: UInt64) throws -> Bool
    /// What the writer himself put at `path` when nothing was there; nil when that was not lately, or never.
    func node(pushedAt path: TreePath) throws -> TreeNode?
}
