/// The purpose of opening a database.
enum DatabasePurpose {
    /// - Parameter preparedLogBytes: see `RocksDBOptions`.
    case writing(preparedLogBytes: Int)
    /// For a copy: its log is written into tables, which then stay as they are.
    case settling
    /// Reading only; the folder stays as it is.
    ///
    /// - Parameter log: the folder of another log to read instead of the database's own, up to the first record that is
    ///   not whole; see `TornLog`. A folder without a log leaves only the contents of the tables.
    case reading(log: String? = nil)

    func choose(_ options: borrowing NativeOptions) {
        guard case .reading(let log?) = self else { return }
        options.readLog(in: log)
    }

    /// The preparer that writes zeros ahead into its log, once it is open; nil when there is none.
    func preparer(of folder: String) -> LogPreparer? {
        guard case .writing(let bytes) = self, bytes > 0 else { return nil }
        return LogPreparer(folder: folder, aheadBytesMax: bytes)
    }
}
