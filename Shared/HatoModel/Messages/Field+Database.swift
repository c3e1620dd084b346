extension Field {
    /// The parameter of every method of messages: the database, `default` when absent.
    @inline(__always)
    static func database(_ path: Property<DatabaseName?>) -> Field {
        .optional("database", path, "The database; `default` when absent", example: .default)
    }

    /// The path of the node that a method reads or writes.
    @inline(__always)
    static func path(_ path: Property<TreePath>) -> Field {
        .required(
            "path", path,
            """
            The path of the node, e.g. `/chats/c1`; `/` is the root. At most 32 keys of 1 to 768 bytes of UTF-8, and \
            32,768 bytes in all
            """)
    }

    /// The version in the result of a write.
    @inline(__always)
    static func commitVersion(_ path: Property<UInt64>) -> Field {
        .required(
            "version", path,
            """
            The version of the commit; versions grow with each commit of any database, so those of one \
            database have gaps
            """)
    }

    /// The epoch beside a version.
    @inline(__always)
    static func epoch(_ path: Property<String>) -> Field {
        .required(
            "epoch", path,
            """
            The epoch of the store: versions are comparable only within one epoch; it changes when a \
            backup is restored. 32 hexadecimal digits
            """)
    }
}
