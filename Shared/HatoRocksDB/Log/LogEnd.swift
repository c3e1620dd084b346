import HatoStorage

/// The end of the whole records in a file of RocksDB's log, when something follows them.
///
/// **What a crash leaves.** In a prepared log (see `LogPreparer`) a record that was not written completely is followed
/// by zeros instead of the end of the file; and where the machine failed, any sectors that were not synced may be
/// zeros, also those of one record but not of the next. None of it was acknowledged: everything after the first hole is
/// cut, so that a prefix of whole commits is left, however many records the unsynced group had. RocksDB itself would
/// refuse the log, or skip the hole.
///
/// **What is damage.** A torn record shows where it was torn: a sector is on disk or it is not, so that one of them is
/// all zeros, or everything is zeros from some offset within it up to the file's end. A record that would be whole with
/// another length, or with one bit flipped, was written completely and is damaged, whatever zeros it holds. That, and
/// any other record that is not as it was written, is left for RocksDB to refuse. A record that still looks torn and is
/// not (a sector that was on disk became zeros) is detected by the versions that had been synced before later records
/// were written (`LogMark`), and when the store is opened: see `TornLog`.
///
/// **Layout.** A log is blocks of 32 KiB. A record is one or more parts, none across the end of a block: checksum of
/// the rest (4 bytes), length (2), kind (1 byte: all of a record, its first, a middle or its last part: 1...4), and the
/// bytes. The checksum covers the kind and the bytes. The rest of a block that is too small for a part's head stays
/// empty.
struct LogEnd: Hashable {
    /// The offset after the last whole record.
    var offset: Int
    /// Whether something other than zeros follows.
    var isTorn: Bool
    /// The bytes after the end say that commits up to this version had been synced before them; 0 when they do not say.
    var synced: UInt64 = 0
    /// The bytes whose checksums were compared in vain to find `synced`.
    var searchedBytes = 0

    static let blockBytes = 32 << 10
    static let headBytes = 7
    private static let sectorBytes = 512

    /// A second or two of comparing checksums.
    static let searchedBytesMax = 512 << 20

    /// Nil when the log ends with its file, and when it is damaged.
    static func find(
        in path: String, searchedBytesMax: Int = LogEnd.searchedBytesMax
    ) throws(StoreError) -> LogEnd? {
        var reader = try Reader(path)
        guard let flaw = try reader.firstFlaw(checkingAll: false) else { return nil }
        if try reader.isZero(from: flaw.record) { return LogEnd(offset: flaw.record, isTorn: false) }
        guard flaw.mayBeTorn else { return nil }
        if !flaw.hasZeroSector {
            guard try reader.isZero(from: flaw.end - 1) else { return nil }
        }
        // The records skipped above must be whole.
        guard let checked = try reader.firstFlaw(checkingAll: true), checked.place == flaw.place else { return nil }
        var end = LogEnd(offset: flaw.record, isTorn: true)
        var opening = checked.opening
        if opening == nil { opening = try reader.opening(behind: flaw.place) }
        if let opening {
            (end.synced, end.searchedBytes) = try reader.newestMark(
                behind: flaw.place, of: opening, searchedBytesMax: searchedBytesMax)
        }
        return end
    }

    /// The kind of a part: all of a record, its first part, a middle one, or its last.
    enum PartKind: UInt8 {
        case all = 1
        case first = 2
        case middle = 3
        case last = 4
    }

    /// Visits the parts of the records; the last record may not be whole. Returns the end of the whole records when
    /// something other than zeros follows them; nil when nothing does.
    static func visitParts(
        of path: String, _ visit: (_ kind: PartKind, _ bytes: ArraySlice<UInt8>) -> Void
    ) throws(StoreError) -> Int? {
        var reader = try Reader(path)
        guard let flaw = try reader.firstFlaw(checkingAll: true, visit) else { return nil }
        return try reader.isZero(from: flaw.record) ? nil : flaw.record
    }

    /// Whether every record is as it was written, and only zeros follow.
    static func isWhole(_ path: String) throws(StoreError) -> Bool {
        var reader = try Reader(path)
        guard let flaw = try reader.firstFlaw(checkingAll: true) else { return true }
        return try reader.isZero(from: flaw.record)
    }

    /// Whether the file has no record, not even a part of one.
    static func isEmpty(_ path: String) throws(StoreError) -> Bool {
        var reader = try Reader(path)
        return try reader.isZero(from: 0)
    }

    /// Cuts RocksDB's copy of its newest log in `folder`, made while the log was written: the copy may hold a record
    /// that was being written, and later ones without it.
    static func cutCopy(in folder: String) throws(StoreError) {
        guard let newest = LogFiles.numbers(in: folder).last else { return }
        let path = LogFiles.path(newest, in: folder)
        var reader = try Reader(path)
        guard let flaw = try reader.firstFlaw(checkingAll: true) else { return }
        let file = try OpenFile(path, access: .write)
        // The other files are links to the files of the store.
        guard try file.linkCount() == 1 else { return }
        try file.cut(to: flaw.record)
    }

    /// The first position without a whole record.
    private struct Flaw {
        /// The offset of the part that is not whole.
        var place: Int
        /// The offset of its record.
        var record: Int
        /// The end of that part; the end of its head when the head is invalid.
        var end: Int
        var hasZeroSector: Bool
        /// False where a part was written completely.
        var mayBeTorn: Bool
        /// The opening named by the last whole record that names one, when all were checked.
        var opening: UInt64?
    }

    private struct Reader {
        private let file: OpenFile
        private var block = [UInt8](repeating: 0, count: blockBytes)
        private var count = 0
        private var start = 0

        init(_ path: String) throws(StoreError) { file = try OpenFile(path, access: .read) }

        /// Finds the first flaw.
        ///
        /// - Parameters:
        ///   - checkingAll: compares every checksum, not only those of parts that look torn.
        ///   - visit: called with every part before the flaw.
        mutating func firstFlaw(
            checkingAll: Bool, _ visit: (_ kind: PartKind, _ bytes: ArraySlice<UInt8>) -> Void = { _, _ in }
        ) throws(StoreError) -> Flaw? {
            var record: Int?
            var opening: UInt64?
            start = 0
            while true {
                count = try file.read(into: &block, at: start)
                var place = 0
                while count - place >= headBytes {
                    let end = place + headBytes + Int(block[place + 4]) + Int(block[place + 5]) << 8
                    let kind = block[place + 6]
                    let isEmpty = kind == 0 && end == place + headBytes
                    // RocksDB treats a record cut by the end of the file as the end of the log, and so does this
                    // reader.
                    if end > count, count < blockBytes, !isEmpty { return nil }
                    let isPart = (1...4).contains(kind) && end <= count
                    let isInPlace = (record == nil) == (kind == 1 || kind == 2)
                    let isWhole = isPart && isWhole(place..<end, checkingAll: checkingAll || !isInPlace)
                    guard isWhole, isInPlace else {
                        // The extent of a part with an invalid head is unknown: only the head itself may be torn.
                        let extent = place..<(isPart ? end : place + headBytes)
                        return Flaw(
                            place: start + place, record: record ?? start + place, end: start + extent.upperBound,
                            hasZeroSector: hasZeroSector(extent),
                            mayBeTorn: !isWhole && !wasWritten(place..<min(end, count)), opening: opening)
                    }
                    // Only the end of a record is written by the store alone; and a record that was not checked may not
                    // be whole.
                    if checkingAll, kind == 1 || kind == 4 {
                        opening = LogMark(atEndOf: block[place + headBytes..<end])?.opening ?? opening
                    }
                    record = kind == 1 || kind == 4 ? nil : record ?? start + place
                    if let kind = PartKind(rawValue: kind) { visit(kind, block[place + headBytes..<end]) }
                    place = end
                }
                if count < blockBytes { return nil }
                start += blockBytes
            }
        }

        private func isWhole(_ part: Range<Int>, checkingAll: Bool) -> Bool {
            guard checkingAll || block[part.upperBound - 1] == 0 || hasZeroSector(part) else { return true }
            return checksum(of: part) == CRC32C.masked(of: block[part.lowerBound + 6..<part.upperBound])
        }

        /// Whether the part was whole before one bit was flipped: in its length, which the checksum does not cover, in
        /// the bytes that it covers, or in the checksum.
        private func wasWritten(_ part: Range<Int>) -> Bool {
            let (sum, bytes) = (checksum(of: part), block[part.lowerBound + 6..<part.upperBound])
            if CRC32C.isMasked(sum, ofStartOf: block[part.lowerBound + 6..<count]) { return true }
            let difference = CRC32C.masked(of: bytes) ^ sum
            let flipped: Int? =
                difference.nonzeroBitCount == 1
                ? part.lowerBound + difference.trailingZeroBitCount / 8 : CRC32C.flippedByte(sum, of: bytes)
            guard let flipped else { return false }
            // That bit may be all that the part had in a sector that a crash kept from the disk.
            let sector = flipped / sectorBytes * sectorBytes
            return block[max(sector, part.lowerBound)..<min(sector + sectorBytes, count)].contains { $0 != 0 }
        }

        private func checksum(of part: Range<Int>) -> UInt32 {
            (0..<4).reduce(0) { $0 | UInt32(block[part.lowerBound + $1]) << (8 * $1) }
        }

        /// Whether a sector has only zeros from the start of the part in it, or from the end of its head in it: RocksDB
        /// writes records of more than 1 MiB in several steps, and one of them may end with a head. If the part ends in
        /// the sector, the next part would follow.
        private func hasZeroSector(_ part: Range<Int>) -> Bool {
            let (first, bytes) = (part.lowerBound / sectorBytes * sectorBytes, part.lowerBound + headBytes)
            return stride(from: first, to: part.upperBound, by: sectorBytes).contains { sector in
                let end = min(sector + sectorBytes, count)
                if block[max(sector, part.lowerBound)..<end].allSatisfy({ $0 == 0 }) { return true }
                guard part.upperBound > bytes, (sector..<end).contains(bytes) else { return false }
                return block[bytes..<end].allSatisfy { $0 == 0 }
            }
        }

        /// The opening that the log names where the hole is in its first record: read only from parts that follow each
        /// other from the start of a block, where only RocksDB writes.
        mutating func opening(behind place: Int) throws(StoreError) -> UInt64? {
            start = place / blockBytes * blockBytes
            repeat {
                start += blockBytes
                count = try file.read(into: &block, at: start)
                var place = 0
                while count - place >= headBytes {
                    let end = place + headBytes + Int(block[place + 4]) + Int(block[place + 5]) << 8
                    let kind = block[place + 6]
                    guard (1...4).contains(kind), end <= count, isWhole(place..<end, checkingAll: true) else { break }
                    if kind == 1 || kind == 4, let mark = LogMark(atEndOf: block[place + headBytes..<end]) {
                        return mark.opening
                    }
                    place = end
                }
            } while count == blockBytes
            return nil
        }

        /// The newest synced version in the whole records of this opening after `place`; the first may begin anywhere.
        ///
        /// Behind a hole every byte may be a record's first, and bytes of rows may look like the head of one: when the
        /// checksums of so many bytes were compared in vain, records are only looked for at the start of a block.
        mutating func newestMark(
            behind place: Int, of opening: UInt64, searchedBytesMax: Int
        ) throws(StoreError) -> (synced: UInt64, searchedBytes: Int) {
            var newest: UInt64 = 0
            var searched = 0
            start = place / blockBytes * blockBytes
            var place = place - start + 1
            while true {
                count = try file.read(into: &block, at: start)
                while count - place >= headBytes {
                    let end = place + headBytes + Int(block[place + 4]) + Int(block[place + 5]) << 8
                    let kind = block[place + 6]
                    let isPart = (1...4).contains(kind) && end <= count
                    let isWhole = isPart && isWhole(place..<end, checkingAll: true)
                    let mark =
                        isWhole && (kind == 1 || kind == 4)
                        ? LogMark(atEndOf: block[place + headBytes..<end]) : nil
                    // A mark of another opening belongs to the contents of a row.
                    guard isWhole, mark == nil || mark?.opening == opening else {
                        if isPart { searched += end - place }
                        place = searched < searchedBytesMax ? place + 1 : count
                        continue
                    }
                    if let mark { newest = max(newest, mark.synced) }
                    place = end
                }
                if count < blockBytes { return (newest, searched) }
                start += blockBytes
                place = 0
            }
        }

        mutating func isZero(from offset: Int) throws(StoreError) -> Bool {
            var place = offset
            while true {
                let count = try file.read(into: &block, at: place)
                if count == 0 { return true }
                if block[..<count].contains(where: { $0 != 0 }) { return false }
                place += count
            }
        }
    }
}
