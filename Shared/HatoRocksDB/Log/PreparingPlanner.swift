/// Decides which bytes of a log are prepared next, and when to look again.
struct PreparingPlanner {
    /// A log of fewer bytes is not prepared, and neither is this distance after its end: the writer should never have
    /// to wait for zeros that are being written.
    static let gapBytes = 64 << 10
    /// Zeros written and synced at once: a concurrent sync of the writer waits for about this much.
    static let chunkBytes = 512 << 10
    private static let stepBytesMax = 256 << 10
    /// When a write, and so a sync, has more than this on average, writing all of it twice takes longer than the faster
    /// sync saves.
    static let writeBytesMax = 128 << 10
    private static let pageBytes = 4096

    /// At most this many bytes are prepared ahead, and no more than the log itself has: small stores stay small on
    /// disk.
    let aheadBytesMax: Int

    /// The bytes to prepare next; nil when nothing is to be prepared now.
    ///
    /// - Parameters:
    ///   - written: the log has at most this many bytes.
    ///   - prepared: the log is prepared up to this offset.
    func next(written: Int, prepared: Int) -> Range<Int>? {
        guard written >= Self.gapBytes else { return nil }
        let ahead = min(aheadBytesMax, written)
        let start = max(prepared, Self.pageAbove(written + Self.gapBytes))
        let room = Self.pageAbove(written + ahead) - start
        // A few large chunks rather than many small ones, since each costs a sync.
        guard room > 0, room >= min(Self.chunkBytes, ahead / 4) else { return nil }
        return start..<start + min(room, Self.chunkBytes)
    }

    /// Whether recent writes are small enough for preparing to save time.
    func pays(bytes: Int, writes: Int) -> Bool { bytes <= writes * Self.writeBytesMax }

    /// The number of further written bytes after which to check again.
    func step(written: Int) -> Int { min(Self.stepBytesMax, max(Self.gapBytes, min(aheadBytesMax, written) / 8)) }

    private static func pageAbove(_ place: Int) -> Int { (place + pageBytes - 1) / pageBytes * pageBytes }
}
