/// Decides which bytes of a log are prepared next, and when to look again.
struct PreparingPlanner {
    /// A log of fewer bytes is left as it is, and so close before its end nothing is prepared: the writer should never
    /// have to wait for what is being prepared.
    static let gapBytes = 64 << 10
    /// What is written and synced at once: a sync of the writer that comes meanwhile waits for about so much.
    static let chunkBytes = 512 << 10
    private static let stepBytesMax = 256 << 10
    /// Where one write, and so one sync, brings more than this on average, writing all of it twice takes longer than is
    /// spared.
    static let writeBytesMax = 128 << 10
    private static let pageBytes = 4096

    /// So many bytes are kept prepared before a log that has as many itself: small stores stay small on disk.
    let aheadBytesMax: Int

    /// - Parameters:
    ///   - written: the log has at most so many bytes.
    ///   - prepared: up to here it is prepared already.
    func next(written: Int, prepared: Int) -> Range<Int>? {
        guard written >= Self.gapBytes else { return nil }
        let ahead = min(aheadBytesMax, written)
        let start = max(prepared, Self.pageAbove(written + Self.gapBytes))
        let room = Self.pageAbove(written + ahead) - start
        // Few large chunks rather than many small ones: each costs a sync.
        guard room > 0, room >= min(Self.chunkBytes, ahead / 4) else { return nil }
        return start..<start + min(room, Self.chunkBytes)
    }

    /// Whether writes are so small, of late, that preparing pays.
    func pays(bytes: Int, writes: Int) -> Bool { bytes <= writes * Self.writeBytesMax }

    /// After so many more bytes.
    func step(written: Int) -> Int { min(Self.stepBytesMax, max(Self.gapBytes, min(aheadBytesMax, written) / 8)) }

    private static func pageAbove(_ place: Int) -> Int { (place + pageBytes - 1) / pageBytes * pageBytes }
}
