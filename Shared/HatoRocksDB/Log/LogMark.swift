/// The mark at the end of every record of the log that holds commits, and nowhere else: the newest version that had
/// been synced when the record was written.
///
/// A crash tears only what was not synced. So if a record after a hole says that a commit had been synced which is not
/// there before the hole, the log was damaged, however torn it looks, and also when the `answered` file is missing or
/// has come back older than it was.
///
/// After a hole it is unknown where records begin, so bytes that look like a mark may come from the contents of a
/// message. So a mark also names its opening: a random number that occurs only in the log's own marks. A mark counts
/// only when it names the same opening as a whole record before the hole (a file of the log belongs to one opening).
///
/// RocksDB calls this log data and ignores it: a tag (3), the length and that many bytes.
struct LogMark: Hashable {
    /// Must not be disclosed; see above.
    var opening: UInt64
    var synced: UInt64

    private static let mark: UInt64 = 0x6861_746F_2D6C_6F67  // "hato-log"
    private static let head: [UInt8] = [3, 24]

    var bytes: [UInt8] { Self.mark.bigEndianBytes + opening.bigEndianBytes + synced.bigEndianBytes }

    init(opening: UInt64, synced: UInt64) {
        self.opening = opening
        self.synced = synced
    }

    /// Nil when there is no mark, or not all of it.
    init?(atEndOf record: ArraySlice<UInt8>) {
        let found = Array(record.suffix(Self.head.count + 24))
        guard found.count == Self.head.count + 24, found.starts(with: Self.head),
            UInt64(bigEndianBytes: found.span.extracting(2..<10)) == Self.mark,
            let opening = UInt64(bigEndianBytes: found.span.extracting(10..<18)),
            let synced = UInt64(bigEndianBytes: found.span.extracting(18..<26))
        else { return nil }
        self.init(opening: opening, synced: synced)
    }
}
