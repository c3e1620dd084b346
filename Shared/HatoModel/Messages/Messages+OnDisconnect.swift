extension Messages {
    /// Writes that are applied when the connection ends, for whatever reason.
    ///
    /// The rules authorise each call when it arrives, and its remaining writes once more when the connection ends: then
    /// for the user of the connection (or of the call's own `auth`) at that time. Writes refused then are dropped
    /// silently. Server values are resolved at that time too. Calls are merged: a later one at or above a path replaces
    /// the earlier writes there.
    public enum OnDisconnect {
        /// Replaces the node at `path` when the connection ends.
        public struct Set: RPCRequest {
            public static let method = "messages.onDisconnect.set"
            public static let summary =
                """
                Registers a write that replaces a node when this connection ends, however it ends. The rules \
                are evaluated now and again at the end; a write that they refuse then is omitted without a \
                message. Replaces the registered writes at and below the path, and becomes part of one above \
                it. At most 1,000 paths (`too_many_on_disconnect`) and 1 MiB (`on_disconnect_too_big`) are \
                registered for one connection
                """
            public static let access = Access.rules
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var path: TreePath
            public var value: JSONValue

            public static let fields = Fields<Self>(
                blank: Self(path: .root, value: .null),
                .database(\.database),
                .path(\.path),
                .required(
                    "value", \.value,
                    """
                    The value to write when the connection ends; null removes the node. Server values are \
                    resolved at the end; limits as in `messages.set`
                    """))

            public init(database: DatabaseName? = nil, path: TreePath, value: JSONValue) {
                self.database = database
                self.path = path
                self.value = value
            }

            public typealias Result = Empty
        }

        /// Replaces several nodes below `path` when the connection ends.
        public struct Update: RPCRequest {
            public static let method = "messages.onDisconnect.update"
            public static let summary =
                """
                Registers writes that replace several nodes below a path when this connection ends; the same \
                as `messages.onDisconnect.set` of each, with the same limits
                """
            public static let access = Access.rules
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var path: TreePath
            public var values: JSONObject

            public static let fields = Fields<Self>(
                blank: Self(path: .root, values: [:]),
                .database(\.database),
                .path(\.path),
                .required(
                    "values", \.values,
                    """
                    New values by path relative to `path` (`"a/b"`), written when the connection ends; no path \
                    at or above another (`conflicting_paths`); null removes the node
                    """))

            public init(database: DatabaseName? = nil, path: TreePath, values: JSONObject) {
                self.database = database
                self.path = path
                self.values = values
            }

            public typealias Result = Empty
        }

        /// Removes the node at `path` when the connection ends.
        public struct Remove: RPCRequest {
            public static let method = "messages.onDisconnect.remove"
            public static let summary = """
                Registers a write that removes a node when this connection ends; the same as \
                `messages.onDisconnect.set` of null, with the same limits
                """
            public static let access = Access.rules
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var path: TreePath

            public static let fields = Fields<Self>(
                blank: Self(path: .root),
                .database(\.database),
                .path(\.path))

            public init(database: DatabaseName? = nil, path: TreePath) {
                self.database = database
                self.path = path
            }

            public typealias Result = Empty
        }

        /// Removes the pending writes at and below `path`.
        public struct Cancel: RPCRequest {
            public static let method = "messages.onDisconnect.cancel"
            public static let summary =
                """
                Cancels the registered writes at and below a path. If a value is registered above the path, \
                its other children are still written; if a removal is registered above the path, it is \
                cancelled as a whole
                """
            public static let access = Access.anyone
            public static let effect = Effect.write

            public var database: DatabaseName?
            public var path: TreePath

            public static let fields = Fields<Self>(
                blank: Self(path: .root),
                .database(\.database),
                .path(\.path))

            public init(database: DatabaseName? = nil, path: TreePath) {
                self.database = database
                self.path = path
            }

            public typealias Result = Empty
        }
    }
}

extension Messages.OnDisconnect.Set {
    public static var example: RPCExample<Self> {
        RPCExample(
            Self(path: MessagesExamples.status, value: ["state": "offline", "since": [".sv": "timestamp"]]), Empty())
    }
}

extension Messages.OnDisconnect.Update {
    public static var example: RPCExample<Self> {
        RPCExample(Self(path: MessagesExamples.room, values: ["typing/masuo": nil, "online/masuo": false]), Empty())
    }
}

extension Messages.OnDisconnect.Remove {
    public static var example: RPCExample<Self> { RPCExample(Self(path: MessagesExamples.typing), Empty()) }
}

extension Messages.OnDisconnect.Cancel {
    public static var example: RPCExample<Self> { RPCExample(Self(path: MessagesExamples.typing), Empty()) }
}
