extension Field {
    /// The parameter of every method of messages: the database, `default` when absent.
    @inline(__always)
    static func database(_ path: Property<DatabaseName?>) -> Field {
        .optional("database", path, "The database; `default` when absent", example: .default)
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
