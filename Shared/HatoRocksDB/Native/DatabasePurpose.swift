/// What a database is opened for.
enum DatabasePurpose {
    /// - Parameter preparedLogBytes: see `RocksDBOptions`.
    case writing(preparedLogBytes: Int)
    /// Of a copy: what is in its log is put into tables, which then stay as they are.
    case settling
    /// It is only looked at; its folder stays as it is.
    ///
    /// - Parameter log: the folder of another log that is read instead of its own, up to the first record that is
    ///   not whole; see `TornLog`. One without any leaves what is in the tables.
    case reading(log: String? = nil)

    func choose(_ options: borrowing NativeOptions) {
        guard case .reading(let log?) = self else { return }
        options.readLog(in: log)
    }

    /// What writes ahead of it, once it is open.
    func preparer(of folder: String) -> LogPreparer? {
        guard case .writing(let bytes) = self, bytes > 0 else { return nil }
        return LogPreparer(folder: folder, aheadBytesMax: bytes)
    }
}
