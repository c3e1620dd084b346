extension RocksDatabase {
    /// What a database is opened for.
    enum Purpose {
        /// - Parameter preparedLogBytes: see `RocksDBOptions`.
        case writing(preparedLogBytes: Int)
        /// It is only looked at; its folder stays as it is.
        ///
        /// - Parameter isTorn: whether a crash has torn the end of its log, see `LogEnd`: reading it ends there.
        case reading(isTorn: Bool)

        /// What writes ahead of it, once it is open.
        func preparer(of folder: String) -> LogPreparer? {
            guard case .writing(let bytes) = self, bytes > 0 else { return nil }
            return LogPreparer(folder: folder, aheadBytesMax: bytes)
        }
    }
}
