import HatoStorage

/// The commits that a database's log holds, found before RocksDB replays it.
///
/// The log is read record by record: this takes the memory of one record, however long the log is. RocksDB opens a
/// database for reading only with everything that no table holds in memory, and the settings of this start do not limit
/// what an earlier one has left.
struct LogContents {
    /// Versions of commits whose record is in the log.
    private(set) var commits = VersionRanges()
    /// Records of commits up to this version were removed; 0 when the log does not say.
    private(set) var forgotten: UInt64 = 0

    /// The ids of the column families in the log.
    struct Families {
        var about: UInt32
        var commits: UInt32
    }

    /// The result of reading a log.
    enum Reading {
        case whole(LogContents)
        /// This file is not as it was written, or holds an unknown entry.
        case flawed(file: String)
    }

    /// Reads all files of the log.
    ///
    /// - Parameter torn: the end of the log, although bytes follow it.
    static func read(
        in folder: String, _ families: Families, torn: TornLog? = nil
    ) throws(StoreError) -> Reading {
        var (contents, isKnown) = (LogContents(), true)
        // One buffer for all records, since few are large.
        var record: [UInt8] = []
        for number in LogFiles.numbers(in: folder) {
            let file = LogFiles.path(number, in: folder)
            let end = try LogEnd.visitParts(of: file) { kind, bytes in
                if kind == .all || kind == .first { record.removeAll(keepingCapacity: true) }
                record.append(contentsOf: bytes)
                if kind == .all || kind == .last { isKnown = contents.note(record, families) && isKnown }
            }
            guard isKnown, end == nil || torn.map({ $0.number == number && $0.offset == end }) == true else {
                return .flawed(file: file)
            }
        }
        return .whole(contents)
    }

    private mutating func note(_ record: [UInt8], _ families: Families) -> Bool {
        WriteBatchReader.visitPuts(of: record) { family, key, value in
            switch family {
            case families.commits:
                if let version = UInt64(bigEndianBytes: record.span.extracting(key)) { commits.insert(version) }
            case families.about where record[key].elementsEqual("compacted".utf8):
                forgotten = max(forgotten, UInt64(bigEndianBytes: record.span.extracting(value)) ?? 0)
            default: break
            }
        }
    }

    /// The total bytes of all files.
    static func byteCount(in folder: String) throws(StoreError) -> Int {
        var sum = 0
        for number in LogFiles.numbers(in: folder) {
            sum += try OpenFile(LogFiles.path(number, in: folder), access: .read).byteCount()
        }
        return sum
    }
}

/// Reads one record of the log in the layout of RocksDB's `WriteBatch` (`db/write_batch.cc`): a sequence number (8
/// bytes), a count (4), and that many entries of a tag, the number of a column family for some tags, and byte strings.
/// Numbers are variable-length, 7 bits a byte, the lowest first; a string is its length and its bytes.
enum WriteBatchReader {
    private static let headBytes = 12

    /// Visits each row that is put; the ranges are those of its key and its value in `record`. Returns false when the
    /// record is invalid, or has an entry of a kind that no store writes.
    static func visitPuts(
        of record: [UInt8], _ visit: (_ family: UInt32, _ key: Range<Int>, _ value: Range<Int>) -> Void
    ) -> Bool {
        var cursor = Cursor(bytes: record, place: headBytes)
        while cursor.place < record.count {
            let tag = record[cursor.place]
            cursor.place += 1
            switch tag {
            // A put, without and with a family.
            case 0x01, 0x05:
                guard let family = tag == 0x05 ? cursor.number() : 0, let key = cursor.string(),
                    let value = cursor.string()
                else { return false }
                visit(family, key, value)
            // A delete or a single delete, without and with a family.
            case 0x00, 0x07: guard cursor.string() != nil else { return false }
            case 0x04, 0x08: guard cursor.number() != nil, cursor.string() != nil else { return false }
            // A range delete, without and with a family.
            case 0x0F: guard cursor.string() != nil, cursor.string() != nil else { return false }
            case 0x0E:
                guard cursor.number() != nil, cursor.string() != nil, cursor.string() != nil else { return false }
            // Log data, and a no-op.
            case 0x03: guard cursor.string() != nil else { return false }
            case 0x0D: break
            default: return false
            }
        }
        return cursor.place == record.count
    }

    private struct Cursor {
        let bytes: [UInt8]
        var place: Int

        mutating func number() -> UInt32? {
            var number: UInt64 = 0
            for shift in stride(from: 0, through: 28, by: 7) {
                guard place < bytes.count else { return nil }
                let byte = bytes[place]
                place += 1
                number |= UInt64(byte & 0x7F) << UInt64(shift)
                if byte < 0x80 { return UInt32(exactly: number) }
            }
            return nil
        }

        mutating func string() -> Range<Int>? {
            guard let count = number(), Int(count) <= bytes.count - place else { return nil }
            defer { place += Int(count) }
            return place..<place + Int(count)
        }
    }
}

/// A set of versions as ranges; they come mostly in rising order and without gaps.
struct VersionRanges: Hashable {
    private var ranges: [ClosedRange<UInt64>] = []

    var newest: UInt64? { ranges.lazy.map(\.upperBound).max() }

    mutating func insert(_ version: UInt64) {
        guard let last = ranges.last else { return ranges.append(version...version) }
        if last.contains(version) { return }
        if version > 0, last.upperBound == version - 1 {
            ranges[ranges.count - 1] = last.lowerBound...version
        } else {
            ranges.append(version...version)
        }
    }

    mutating func formUnion(_ other: VersionRanges) { ranges += other.ranges }

    /// The missing versions above `version` and below the newest.
    func gaps(after version: UInt64) -> [ClosedRange<UInt64>] {
        guard version < .max else { return [] }
        var (gaps, expected) = ([ClosedRange<UInt64>](), version + 1)
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound >= expected {
            if range.lowerBound > expected { gaps.append(expected...(range.lowerBound - 1)) }
            guard range.upperBound < .max else { return gaps }
            expected = range.upperBound + 1
        }
        return gaps
    }
}
