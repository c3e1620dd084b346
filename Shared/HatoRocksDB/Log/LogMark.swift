/// Stands at the end of every record of the log that holds commits, and nowhere else: which commits had been synced
/// when it was written.
///
/// A crash tears only what was not synced. So where a record behind a hole says that a commit had been synced which
/// is not there before the hole, the log was damaged, however torn it looks, and also when the `answered` file is not
/// there to say so or has come back older than it was.
///
/// Behind a hole nobody knows where records begin, so that what looks like one may be what somebody wrote into a
/// message. So a mark also names its opening: a random number that stands nowhere but in the log's own marks. One
/// counts only when it names the same as a whole record before the hole (a file of the log is one opening's).
///
/// It is what RocksDB calls log data, which it leaves alone: a tag (3), the length and so many bytes.
struct LogMark: Hashable {
    /// Tells nobody; see above.
    var opening: UInt64
    var synced: UInt64

    private static let mark: UInt64 = 0x6861_746F_2D6C_6F67  // "hato-log"
    private static let head: [UInt8] = [3, 24]

    var bytes: [UInt8] { Self.mark.bigEndianBytes + opening.bigEndianBytes + synced.bigEndianBytes }

    init(opening: UInt64, synced: UInt64) {
        self.opening = opening
        self.synced = synced
    }

    /// Nil when there is none, or not all of it.
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
