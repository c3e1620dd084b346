extension Messages {
    /// Replaces the node at `path`, its priority included.
    public struct Set: RPCRequest {
        public static let method = "messages.set"
        public static let summary =
            "Replaces a node; null removes it; with a condition it needs the right to read the node too"
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var value: JSONValue
        public var ifMatch: String?
        public var ifVersion: UInt64?

        public static let fields = Fields<Self>(
            blank: Self(path: .root, value: .null),
            .database(\.database),
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .required(
                "value", \.value,
                "The value to write; null removes the node. `{\".sv\": \"timestamp\"}` and `{\".sv\": "
                    + "{\"increment\": n}}` are server values"),
            .optional(
                "ifMatch", \.ifMatch,
                "Writes only if the node has this etag; `null_etag`: only if nothing is there. A caller that "
                    + "may not read the node is denied, whatever the etag",
                example: MessagesExamples.etag),
            .optional(
                "ifVersion", \.ifVersion,
                "Writes only if nothing under the path has changed since this version; 0: only if nothing was "
                    + "written there, as far as changes are kept",
                example: 17))

        public init(
            database: DatabaseName? = nil, path: TreePath, value: JSONValue, ifMatch: String? = nil,
            ifVersion: UInt64? = nil
        ) {
            self.database = database
            self.path = path
            self.value = value
            self.ifMatch = ifMatch
            self.ifVersion = ifVersion
        }

        public struct Result: FieldObject, Hashable {
            public var etag: String?
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .optional("etag", \.etag, "The etag of the written value; only for a conditional write"),
                .required("version", \.version, "The version of the commit: grows with each commit of the store"))

            public init(etag: String? = nil, version: UInt64) {
                self.etag = etag
                self.version = version
            }
        }
    }

    /// Replaces several nodes below `path` in one commit.
    public struct Update: RPCRequest {
        public static let method = "messages.update"
        public static let summary = "Replaces several nodes below a path in one commit; the others stay"
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var values: JSONObject

        public static let fields = Fields<Self>(
            blank: Self(path: .root, values: [:]),
            .database(\.database),
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .required(
                "values", \.values,
                "New values by path relative to `path` (`\"a/b\"`); at most 10,000, none above another; null removes"))

        public init(database: DatabaseName? = nil, path: TreePath, values: JSONObject) {
            self.database = database
            self.path = path
            self.values = values
        }

        public struct Result: FieldObject, Hashable {
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .required("version", \.version, "The version of the commit: grows with each commit of the store"))
            public init(version: UInt64) { self.version = version }
        }
    }

    /// Appends a child under `path` with a time-ordered key.
    ///
    /// A caller without read access must not learn by guessing what is stored: a push with a key is compared with what
    /// the same user pushed under that key according to the newest 1,024 commits, never with what is stored. If these
    /// do not contain the push, or no user is signed in, the response is `already_exists` for every value.
    public struct Push: RPCRequest {
        public static let method = "messages.push"
        public static let summary =
            "Appends a child with a time-ordered key; with a `key` of the caller's it can be repeated: the same value "
            + "again is not written twice, another one is already_exists. Without read access the comparison is with "
            + "the caller's own pushes among the newest 1,024 commits; beyond them it is already_exists too, for every "
            + "value"
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var value: JSONValue
        public var key: PushKey?

        public static let fields = Fields<Self>(
            blank: Self(path: .root, value: .null),
            .database(\.database),
            .required("path", \.path, "The path of the node to append to"),
            .required("value", \.value, "The value to append, with server values as in `messages.set`"),
            .optional(
                "key", \.key,
                "A push id made by the client: the call is safe to repeat. If the key exists with the same "
                    + "value, nothing is written and the response is the same; with another value it is "
                    + "`already_exists` (`key_exists`)",
                example: MessagesExamples.key))

        public init(database: DatabaseName? = nil, path: TreePath, value: JSONValue, key: PushKey? = nil) {
            self.database = database
            self.path = path
            self.value = value
            self.key = key
        }

        public struct Result: FieldObject, Hashable {
            public var key: PushKey
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(key: MessagesExamples.key, version: 0),
                .required("key", \.key, "The key of the new child: 20 characters that sort by time"),
                .required("version", \.version, "The version of the commit: grows with each commit of the store"))

            public init(key: PushKey, version: UInt64) {
                self.key = key
                self.version = version
            }
        }
    }

    /// Removes the node at `path`.
    public struct Remove: RPCRequest {
        public static let method = "messages.remove"
        public static let summary =
            "Removes a node with everything below it; with a condition it needs the right to read the node too"
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var ifMatch: String?

        public static let fields = Fields<Self>(
            blank: Self(path: .root),
            .database(\.database),
            .required("path", \.path, "The path of the node, e.g. `/chats/c1`; `/` is the root"),
            .optional("ifMatch", \.ifMatch, "Removes only if the node has this etag", example: MessagesExamples.etag))

        public init(database: DatabaseName? = nil, path: TreePath, ifMatch: String? = nil) {
            self.database = database
            self.path = path
            self.ifMatch = ifMatch
        }

        public struct Result: FieldObject, Hashable {
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .required("version", \.version, "The version of the commit: grows with each commit of the store"))
            public init(version: UInt64) { self.version = version }
        }
    }
}

extension Messages.Set {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Set(path: MessagesExamples.title, value: "磯野家"), Result(version: 17))
    }
}

extension Messages.Update {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Update(path: MessagesExamples.room, values: ["title": "磯野家", "members/masuo": true]),
            Result(version: 17))
    }
}

extension Messages.Push {
    public static var example: RPCExample<Self> {
        RPCExample(
            Messages.Push(
                path: MessagesExamples.messages,
                value: ["date": [".sv": "timestamp"], "senderId": "masuo", "text": "ただいま"]),
            Result(key: MessagesExamples.key, version: 17))
    }
}

extension Messages.Remove {
    public static var example: RPCExample<Self> {
        RPCExample(Messages.Remove(path: MessagesExamples.message), Result(version: 18))
    }
}
