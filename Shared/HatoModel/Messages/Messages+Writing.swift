extension Messages {
    /// Replaces the node at `path`, its priority included.
    public struct Set: RPCRequest {
        public static let method = "messages.set"
        public static let summary =
            """
            Replaces a node; null removes it. With `ifMatch` or `ifVersion` the caller also needs read \
            access
            """
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var value: JSONValue
        public var ifMatch: String?
        public var ifVersion: UInt64?
        public var etag: Bool?
        public var echo: Bool?

        public static let fields = Fields<Self>(
            blank: Self(path: .root, value: .null),
            .database(\.database),
            .path(\.path),
            .required(
                "value", \.value,
                """
                The value to write; null removes the node. `{".sv": "timestamp"}` and `{".sv": {"increment": \
                n}}` are server values. At most 32 keys from the root to each value (`too_deep`), 10 MiB of \
                UTF-8 a string (`string_too_long`), 1,048,576 values (setting `write-values-max`; \
                `too_many_values`) and 16 MiB a line
                """),
            .optional(
                "ifMatch", \.ifMatch,
                """
                Writes only if the node has this etag (from `messages.get` with `etag: true`); `null_etag`: \
                only if there is no value. Otherwise failed_precondition `etag_mismatch` with `data.etag`, \
                and `data.value` up to 4 KiB. Not together with `ifVersion`. A caller without read access \
                gets permission_denied, whatever the etag
                """,
                example: MessagesExamples.etag),
            .optional(
                "ifVersion", \.ifVersion,
                """
                Writes only if nothing at, above or below the path was written after this version; otherwise \
                failed_precondition `version_mismatch`, also if the service no longer knows what was written \
                since. A version above the newest one: `unknown_version`. 0: only if nothing was written there \
                yet. For nodes over 16 MiB, which have no etag. Not together with `ifMatch`
                """,
                example: 17),
            .etag(\.etag),
            .echo(\.echo))

        public init(
            database: DatabaseName? = nil, path: TreePath, value: JSONValue, ifMatch: String? = nil,
            ifVersion: UInt64? = nil, etag: Bool? = nil, echo: Bool? = nil
        ) {
            self.database = database
            self.path = path
            self.value = value
            self.ifMatch = ifMatch
            self.ifVersion = ifVersion
            self.etag = etag
            self.echo = echo
        }

        public struct Result: FieldObject, Hashable {
            public var etag: String?
            public var value: JSONValue?
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .optional(
                    "etag", \.etag,
                    """
                    The etag of the written value; present with `ifMatch`, and with `etag: true` where `value` would be
                    """),
                .echoed(\.value),
                .required(
                    "version", \.version,
                    """
                    The version of the commit; versions grow with each commit of any database, so those of one \
                    database have gaps
                    """))

            public init(etag: String? = nil, value: JSONValue? = nil, version: UInt64) {
                self.etag = etag
                self.value = value
                self.version = version
            }
        }
    }

    /// Replaces several nodes below `path` in one commit.
    public struct Update: RPCRequest {
        public static let method = "messages.update"
        public static let summary = """
            Replaces several nodes below a path in one commit, all or none; other nodes keep their \
            values
            """
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var values: JSONObject
        public var echo: Bool?

        public static let fields = Fields<Self>(
            blank: Self(path: .root, values: [:]),
            .database(\.database),
            .path(\.path),
            .required(
                "values", \.values,
                """
                New values by path relative to `path` (`"a/b"`), at most 10,000; no path at or above another \
                (`conflicting_paths`); null removes the node. Server values and limits as in `messages.set`
                """),
            .optional(
                "echo", \.echo, "True: returns `values` too, what was written; false when absent", example: true))

        public init(database: DatabaseName? = nil, path: TreePath, values: JSONObject, echo: Bool? = nil) {
            self.database = database
            self.path = path
            self.values = values
            self.echo = echo
        }

        public struct Result: FieldObject, Hashable {
            public var values: JSONObject?
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .optional(
                    "values", \.values,
                    """
                    What was written, by the names of the request, if asked for: plain JSON, server values as numbers, \
                    null where nothing is now; absent under the conditions of `value` in `messages.set`
                    """),
                .commitVersion(\.version))
            public init(values: JSONObject? = nil, version: UInt64) {
                self.values = values
                self.version = version
            }
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
            """
            Appends a child under a new key that sorts by time. With `key`, the call is safe to repeat: \
            the same value is not written twice, and another value gets already_exists (`key_exists`). \
            For a caller without read access only the caller's own pushes in the newest 1,024 commits \
            count as the same; otherwise the response is already_exists, whatever the value
            """
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var value: JSONValue
        public var key: PushKey?
        public var etag: Bool?
        public var echo: Bool?

        public static let fields = Fields<Self>(
            blank: Self(path: .root, value: .null),
            .database(\.database),
            .required(
                "path", \.path,
                """
                The path of the node to append to: at most 31 keys; otherwise as in `messages.get`
                """),
            .required("value", \.value, "The value to append, with server values and limits as in `messages.set`"),
            .optional(
                "key", \.key,
                """
                A push key made by the client, 20 characters, as Firebase's clients make them; generated when \
                absent
                """,
                example: MessagesExamples.key),
            .etag(\.etag),
            .echo(\.echo))

        public init(
            database: DatabaseName? = nil, path: TreePath, value: JSONValue, key: PushKey? = nil, etag: Bool? = nil,
            echo: Bool? = nil
        ) {
            self.database = database
            self.path = path
            self.value = value
            self.key = key
            self.etag = etag
            self.echo = echo
        }

        public struct Result: FieldObject, Hashable {
            public var key: PushKey
            public var etag: String?
            public var value: JSONValue?
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(key: MessagesExamples.key, version: 0),
                .required(
                    "key", \.key, "The key of the new child: 20 characters that sort by time, as Firebase's push keys"),
                .optional(
                    "etag", \.etag, "The etag of the written value, with `etag: true` where `value` would be"),
                .echoed(\.value),
                .required(
                    "version", \.version,
                    """
                    The version of the commit; versions grow with each commit of any database, so those of one \
                    database have gaps
                    """))

            public init(key: PushKey, etag: String? = nil, value: JSONValue? = nil, version: UInt64) {
                self.key = key
                self.etag = etag
                self.value = value
                self.version = version
            }
        }
    }

    /// Removes the node at `path`.
    public struct Remove: RPCRequest {
        public static let method = "messages.remove"
        public static let summary =
            """
            Removes a node with everything below it. With `ifMatch` the caller also needs read access
            """
        public static let access = Access.rules
        public static let effect = Effect.write

        public var database: DatabaseName?
        public var path: TreePath
        public var ifMatch: String?

        public static let fields = Fields<Self>(
            blank: Self(path: .root),
            .database(\.database),
            .path(\.path),
            .optional(
                "ifMatch", \.ifMatch,
                "Removes only if the node has this etag; otherwise failed_precondition `etag_mismatch`",
                example: MessagesExamples.etag))

        public init(database: DatabaseName? = nil, path: TreePath, ifMatch: String? = nil) {
            self.database = database
            self.path = path
            self.ifMatch = ifMatch
        }

        public struct Result: FieldObject, Hashable {
            public var version: UInt64

            public static let fields = Fields<Self>(
                blank: Self(version: 0),
                .commitVersion(\.version))
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

extension Field {
    fileprivate static func etag(_ path: Property<Bool?>) -> Field {
        .optional("etag", path, "True: returns `etag` too, also without a condition; false when absent", example: true)
    }

    fileprivate static func echo(_ path: Property<Bool?>) -> Field {
        .optional("echo", path, "True: returns `value` too, what was written; false when absent", example: true)
    }

    fileprivate static func echoed(_ path: Property<JSONValue?>) -> Field {
        .optionalJSON(
            "value", path,
            """
            What was written, if asked for: plain JSON, server values as numbers, null where nothing is now. Absent \
            where an increment read a number that the caller may not read, where an earlier try of a push has \
            written it and its change is not kept any more, and where it is larger than a response may be
            """)
    }
}
