extension Field {
    /// The parameter of every method of messages: the database, `default` when absent.
    @inline(__always)
    static func database(_ path: Property<DatabaseName?>) -> Field {
        .optional("database", path, "The database; `default` when absent", example: .default)
    }
}
