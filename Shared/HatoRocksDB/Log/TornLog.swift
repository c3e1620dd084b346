import HatoStorage

/// The last file of a log that holds anything, its end torn by a crash; see `LogEnd`.
///
/// **Looked at before it is cut.** What looks torn may be a sector that was on disk and is lost. So what would be
/// left is read, and the tables are opened to be looked at beside a log that ends where this one would: all that was
/// answered, or is known to have been synced, must be there, no commit missing, and no table ahead of it. Cutting is
/// the last step, and changes nothing that this look has seen; whoever dies before or after it finds the same.
///
/// **Only the last file.** RocksDB syncs a file before the next one takes what is answered. One with more behind it,
/// or behind one that is damaged, was not torn by a crash, or not by one alone: it stays as it is.
struct TornLog {
    let folder: String
    let number: UInt64
    /// Where its whole records end.
    let offset: Int
    /// What is left must hold these commits (`LogEnd.synced`).
    let synced: UInt64

    private var path: String { LogFiles.path(number, in: folder) }

    /// Nil when there is none. Reads the whole log: for who knows that something is wrong with it.
    static func find(in folder: String) throws(StoreError) -> TornLog? {
        var numbers = LogFiles.numbers(in: folder)
        while let last = numbers.last, try LogEnd.isEmpty(LogFiles.path(last, in: folder)) { numbers.removeLast() }
        guard let last = numbers.popLast(), let end = try LogEnd.find(in: LogFiles.path(last, in: folder)), end.isTorn
        else { return nil }
        for number in numbers {
            guard try LogEnd.isWhole(LogFiles.path(number, in: folder)) else { return nil }
        }
        return TornLog(folder: folder, number: last, offset: end.offset, synced: end.synced)
    }

    /// Makes the folder `trial`, with a log that ends in this file: it holds a record that is damaged for sure, and
    /// nothing before it. Reading in point-in-time mode ends there, and compares the tables with where it ends. What
    /// is before it is read by `LogContents`.
    func layOut(in trial: String) throws(StoreError) {
        try Files.createFolder(trial)
        let sum = ~CRC32C.masked(of: [1, 0xFF])
        let damaged = (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) } + [1, 0, 1, 0xFF]
        try OpenFile(LogFiles.path(number, in: trial), access: .createEmpty).write(damaged.span, at: 0)
    }

    func cut() throws(StoreError) { try OpenFile(path, access: .write).cut(to: offset) }
}
