import HatoStorage

/// The last file of a log that holds anything, its end torn by a crash; see `LogEnd`.
///
/// **Checked before it is cut.** What looks torn may be a sector that was on disk and is lost. So the part that would
/// be left is read, and the tables are opened for reading beside a log that ends where this one would: everything
/// acknowledged or known to have been synced must be there, no commit may be missing, and no table may be ahead of it.
/// Cutting is the last step, and changes nothing that this check has read; a process killed before or after it leaves
/// the same result.
///
/// **Only the last file.** RocksDB syncs a file before the next one takes commits that are acknowledged. A torn file
/// that is followed by records, or by a damaged file, was not torn by a crash, or not by one alone: it stays as it is.
struct TornLog {
    let folder: String
    let number: UInt64
    /// The end of its whole records.
    let offset: Int
    /// The remaining log must hold commits up to this version (`LogEnd.synced`).
    let synced: UInt64

    private var path: String { LogFiles.path(number, in: folder) }

    /// Nil when there is none. Reads the whole log: call it only when the log is known to be wrong.
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

    /// Makes the folder `trial` with a log that ends in this file: the file holds only a record that is certainly
    /// damaged. Reading in point-in-time mode ends there, and compares the tables with that end. `LogContents` reads
    /// what is before it.
    func layOut(in trial: String) throws(StoreError) {
        try Files.createFolder(trial)
        let sum = ~CRC32C.masked(of: [1, 0xFF])
        let damaged = (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) } + [1, 0, 1, 0xFF]
        try OpenFile(LogFiles.path(number, in: trial), access: .createEmpty).write(damaged.span, at: 0)
    }

    func cut() throws(StoreError) { try OpenFile(path, access: .write).cut(to: offset) }
}
