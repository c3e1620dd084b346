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
        /// Write only if the node still has this etag; `null_etag`: only if nothing is there. Whether it has tells what is
        /// stored: who may not read the node is denied, whatever the etag.
        public var ifMatch: String?
        /// Write only if nothing under the path has changed since this version; 0: only if nothing was ever written there,
        /// as far as the kept changes tell.
        public var ifVersion: UInt64?

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

        public struct Result: Codable, Sendable, Hashable {
            /// The etag of what was written; only when the write was conditional.
            public var etag: String?
            public var version: UInt64

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
        /// New values by relative path (`"a/b"`); none may lie above another.
        public var values: JSONObject

        public init(database: DatabaseName? = nil, path: TreePath, values: JSONObject) {
            self.database = database
            self.path = path
            self.values = values
        }

        public struct Result: Codable, Sendable, Hashable {
            public var version: UInt64
            public init(version: UInt64) { self.version = version }
        }
    }

    /// Appends a child under `path` with a time-ordered key.
    public struct Push: RPCRequest {
        public static let method = "messages.push"
        public static let summary =
            "Appends a child with a time-ordered key; with a `key` of the caller's it can be repeated: the same value "
            + "again is not written twice, another one is already_exists. Who may not read the place is recognised by "
            + "what he pushed himself, among the newest 1,024 commits; beyond them it is already_exists too, for every value"
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var value: JSONValue
        /// A push id made by the client: makes the call safe to repeat. If the key exists with the same value, nothing
        /// is written and the answer is the same; with another value it is `already_exists` (`key_exists`).
        ///
        /// A caller who may not read the place must not find out by guesses what is stored there. His push is compared
        /// with what he himself pushed under that key, as the newest 1,024 commits tell, and never with what is stored;
        /// if they do not tell, or nobody is signed in, the answer is `already_exists` for every value. As he made the
        /// key, he knows then that his earlier try was written.
        public var key: PushKey?

        public init(database: DatabaseName? = nil, path: TreePath, value: JSONValue, key: PushKey? = nil) {
            self.database = database
            self.path = path
            self.value = value
            self.key = key
        }

        public struct Result: Codable, Sendable, Hashable {
            public var key: PushKey
            public var version: UInt64

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
        /// Remove only if the node still has this etag.
        public var ifMatch: String?

        public init(database: DatabaseName? = nil, path: TreePath, ifMatch: String? = nil) {
            self.database = database
            self.path = path
            self.ifMatch = ifMatch
        }

        public struct Result: Codable, Sendable, Hashable {
            public var version: UInt64
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
