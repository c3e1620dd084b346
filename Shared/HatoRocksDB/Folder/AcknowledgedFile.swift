import HatoStorage

/// The highest version that may have been acknowledged, in a small file of its own beside the database.
///
/// **Purpose.** RocksDB ends its recovery without an error where its log ends: a log that lost its tail (a file system
/// that was repaired, a file cut short, a folder put together from two copies) opens as an older state. This file is an
/// independent record: opening a store below it is refused.
///
/// **Why writing it needs no sync.** It is written after the log's sync has succeeded and before any response is sent,
/// so at every moment `acknowledged versions ≤ this file's newest content` and `this file ≤ the synced log`.
/// - The process is killed (`kill -9`): the content is in the operating system's cache and stays. Both bounds hold
///   exactly.
/// - The machine fails: the file may come back older than it was. The second bound still holds, since older content is
///   smaller: an intact store is never refused. The first bound is weaker, by the versions acknowledged since the
///   operating system last wrote the file back (some 30 s); the log, which is synced for each group, survives a crash.
/// - A sync of this file would only narrow that window, at the cost of a second sync for every group. So a group costs
///   one `pwrite` of 24 bytes, into a file that has had its size since it was created: a full disk cannot refuse it.
///
/// **Torn writes.** Two slots are written alternately, each in a disk sector of its own with a checksum. A slot whose
/// checksum does not match is ignored; when neither matches, the file is damaged.
///
/// `@unchecked Sendable`: `turn` belongs to the thread that makes a group durable, one at a time.
final class AcknowledgedFile: @unchecked Sendable {
    private static let slotBytes = 512
    private static let mark: UInt64 = 0x6861_746F_2D61_6E73  // "hato-ans"

    private let file: OpenFile
    private var turn = 0

    static func create(_ path: String, version: UInt64) throws(StoreError) {
        let slot = encode(version) + [UInt8](repeating: 0, count: slotBytes - 24)
        try Files.write(slot + slot, to: path)
    }

    static func read(_ path: String) throws(StoreError) -> UInt64 {
        let bytes = try Files.read(path)
        let versions = [0, slotBytes].compactMap { start -> UInt64? in
            bytes.count >= start + 24 ? decode(Array(bytes[start..<start + 24])) : nil
        }
        guard let newest = versions.max() else {
            throw .corrupted("\(path) does not say how many commits were acknowledged")
        }
        return newest
    }

    init(_ path: String) throws(StoreError) {
        file = try OpenFile(path, access: .write)
    }

    func note(_ version: UInt64) throws(StoreError) {
        try file.write(Self.encode(version).span, at: turn * Self.slotBytes)
        turn = 1 - turn
    }

    func sync() throws(StoreError) { try file.sync() }

    private static func encode(_ version: UInt64) -> [UInt8] {
        mark.bigEndianBytes + version.bigEndianBytes + checksum(version).bigEndianBytes
    }

    private static func decode(_ bytes: [UInt8]) -> UInt64? {
        guard UInt64(bigEndianBytes: bytes.span.extracting(0..<8)) == mark,
            let version = UInt64(bigEndianBytes: bytes.span.extracting(8..<16)),
            UInt64(bigEndianBytes: bytes.span.extracting(16..<24)) == checksum(version)
        else { return nil }
        return version
    }

    /// SplitMix64's last step: every bit of the version moves about half of the checksum's.
    private static func checksum(_ version: UInt64) -> UInt64 {
        var mixed = version ^ mark
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
