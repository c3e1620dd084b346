import HatoStorage

/// The last file of a log that holds anything, its end torn by a crash; see `LogEnd`.
///
/// **Looked at before it is cut.** What looks torn may be a sector that was on disk and is lost. So what would be left is
/// laid out beside the log, and opened to be looked at: all that was answered, or is known to have been synced, must be in
/// it, no commit missing, and no table ahead of it. Cutting is the last step, and changes nothing that this look has seen; whoever dies before or after
/// it finds the same.
///
/// **Only the last file.** RocksDB syncs a file before the next one takes what is answered. One with more behind it, or
/// behind one that is damaged, was not torn by a crash, or not by one alone: it stays as it is.
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

    /// Makes the folder `trial`, on the same disk, with the log as cutting would leave it, and then a record that is
    /// damaged for sure: reading in point-in-time mode ends there, and compares the tables with where it ends.
    func layOut(in trial: String) throws(StoreError) {
        try Files.createFolder(trial)
        for other in LogFiles.numbers(in: folder) where other < number {
            let (path, name) = (LogFiles.path(other, in: folder), LogFiles.path(other, in: trial))
            do throws(StoreError) {
                try Files.link(path, to: name)
            } catch {
                // Where a disk knows no links, RocksDB copies too.
                try Files.copyFile(path, to: name)
            }
        }
        let (source, copy) = (
            try OpenFile(path, access: .read), try OpenFile(LogFiles.path(number, in: trial), access: .createEmpty)
        )
        var (bytes, place) = ([UInt8](repeating: 0, count: 1 << 20), 0)
        while place < offset {
            let count = min(try source.read(into: &bytes, at: place), offset - place)
            guard count > 0 else { throw .io("\(path) has become shorter while it was read") }
            try copy.write(bytes.span.extracting(0..<count), at: place)
            place += count
        }
        let rest = LogEnd.blockBytes - offset % LogEnd.blockBytes
        let sum = ~CRC32C.masked(of: [1, 0xFF])
        let damaged = (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) } + [1, 0, 1, 0xFF]
        let padding = [UInt8](repeating: 0, count: rest < damaged.count ? rest : 0)
        try copy.write((padding + damaged).span, at: offset)
    }

    func cut() throws(StoreError) { try OpenFile(path, access: .write).cut(to: offset) }
}
