/// Stands at the end of every record of the log that holds commits, and nowhere else: which commits had been synced when it
/// was written.
///
/// A crash tears only what was not synced. So where a record behind a hole says that a commit had been synced which is not
/// there before the hole, the log was damaged, however torn it looks, and also when the `answered` file is not there to
/// say so or has come back older than it was.
///
/// It is what RocksDB calls log data, which it leaves alone: a tag (3), the length and so many bytes.
enum LogMark {
    private static let mark: UInt64 = 0x6861_746F_2D6C_6F67  // "hato-log"
    private static let head: [UInt8] = [3, 16]

    static func bytes(synced version: UInt64) -> [UInt8] { mark.bigEndianBytes + version.bigEndianBytes }

    /// Nil when there is none, or not all of it.
    static func synced(atEndOf record: ArraySlice<UInt8>) -> UInt64? {
        let found = Array(record.suffix(head.count + 16))
        guard found.count == head.count + 16, found.starts(with: head),
            UInt64(bigEndianBytes: found.span.extracting(2..<10)) == mark
        else { return nil }
        return UInt64(bigEndianBytes: found.span.extracting(10..<18))
    }
}
