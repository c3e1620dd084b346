import HatoStorage

/// Writes zeros ahead of RocksDB into the newest file of its log, so that syncing what RocksDB writes there changes
/// neither the file's size nor what is allocated for it: such a sync takes half as long, since the file system has
/// nothing to note of it.
///
/// **Nothing of RocksDB's is ever overwritten.** RocksDB writes at its own place in the file, from 0 on; nobody but
/// the store's writer makes it write. The writer says before each write how many bytes it may take at most
/// (`willWrite`), so the place is known to lie below what was written since the file was last known not to exist.
/// Zeros go only above that; and as long as some are on their way, a write that might reach them waits: for those,
/// and for no more.
///
/// **A file that is not the newest any more** holds fewer bytes than were thought: zeros behind them harm nobody,
/// also when RocksDB has cut and closed it. One that is gone was opened before; it is never created here, and its
/// number never comes again.
///
/// **Who reads a prepared log.** RocksDB passes over zeros without a word (record type 0 is reserved for this). What
/// is different is a record that a crash has torn: where the file ended within it, there are zeros now, and RocksDB
/// would take them for damage. `LogEnd` tells one from the other, and `TornLog` cuts it before the store is opened.
/// Whoever copies a log while it is written may find in it what was written later without what was written before:
/// see `LogEnd.cutCopy`. Nothing is prepared before a first record is complete in the file, since RocksDB reads that
/// one when it lists its log.
///
/// **Failure.** It is an optimisation: when zeros cannot be written or synced, the file is left alone from then on.
/// What of RocksDB's own bytes a failed sync may have lost, the operating system tells each who has the file open.
///
/// The thread starts with the first bytes that are worth it, and sleeps until the writer has written some more.
///
/// `@unchecked Sendable`: every variable is guarded by `condition`.
final class LogPreparer: @unchecked Sendable {
    /// One file of the log; belongs to the thread.
    private struct Log {
        let number: UInt64
        let file: OpenFile?
        /// What `started` was at least when the file was begun.
        let base: Int
        /// What `started` was when it was first seen.
        let seen: Int
        /// It is prepared up to here.
        var prepared = 0
        var hasFailed: Bool
    }

    private let folder: String
    private let planner: PreparingPlanner
    private let condition = ThreadCondition()
    private let hasEnded = Latch()
    /// At most so many bytes of the log RocksDB was asked to write; the last write may not be finished.
    private var started = 0
    /// What `started` was at the end of the last write that was finished.
    private var finished = 0
    /// What `finished` was at the last sync of the whole log.
    private var synced = 0
    /// How many were finished.
    private var writes = 0
    /// What `started` may become at most while zeros are being written.
    private var limit = Int.max
    /// Whether a write waits for zeros: then no more are begun.
    private var isAwaited = false
    /// What wakes the thread, when it is finished.
    private var wakeAt = PreparingPlanner.gapBytes
    private var hasThread = false
    private var isClosed = false

    /// - Parameters:
    ///   - folder: of a database that was just opened, and whose log is new.
    ///   - aheadBytesMax: more than 0.
    init(folder: String, aheadBytesMax: Int) {
        self.folder = folder
        planner = PreparingPlanner(aheadBytesMax: aheadBytesMax)
    }

    /// Ends the thread.
    func close() {
        let hasThread = condition.withLock {
            isClosed = true
            condition.broadcast()
            return self.hasThread
        }
        if hasThread { hasEnded.wait() }
    }

    // MARK: For the writer, one write at a time

    /// - Parameter bytes: of the record. The log takes more: 7 for each part of a block of 32 KiB, and up to 6 that
    ///   are left over at its end.
    ///
    /// Returns how many chunks of zeros it waited for: never more than one, which may be there already half.
    @discardableResult
    func willWrite(_ bytes: Int) -> Int {
        condition.withLock {
            let reached = started + bytes + bytes / 2048 + 64
            var waits = 0
            while reached > limit {
                isAwaited = true
                waits += 1
                condition.wait()
            }
            isAwaited = false
            started = reached
            return waits
        }
    }

    func didWrite() {
        let isFirst = condition.withLock {
            finished = started
            writes += 1
            guard finished >= wakeAt, !isClosed else { return false }
            defer { hasThread = true }
            if hasThread { condition.broadcast() }
            return !hasThread
        }
        guard isFirst else { return }
        do {
            try startThread { self.run() }
        } catch {
            // Without a thread the log is as ever.
            condition.withLock {
                hasThread = false
                wakeAt = .max
            }
            hasEnded.open()
        }
    }

    /// All that was written is on disk. No write goes on meanwhile.
    func didSync() { condition.withLock { synced = finished } }

    // MARK: The thread

    private func run() {
        defer { hasEnded.open() }
        var log: Log?
        // What was finished before the last time somebody looked which files there are.
        var known = (bytes: 0, writes: 0)
        while waitUntilDue() {
            defer { sleepForStep(of: log) }
            let before = condition.withLock { (bytes: finished, writes: writes) }
            // Where nobody could look, it stays unknown since when a file is there.
            guard let newest = LogFiles.numbers(in: folder).last, newest >= log?.number ?? 0 else { continue }
            if newest != log?.number {
                let file = try? OpenFile(LogFiles.path(newest, in: folder), access: .write)
                log = Log(
                    number: newest, file: file, base: known.bytes, seen: condition.withLock { started },
                    hasFailed: file == nil)
            }
            if planner.pays(bytes: before.bytes - known.bytes, writes: before.writes - known.writes) {
                while prepareChunk(of: &log) {}
            }
            known = before
        }
    }

    /// False when the thread is to end.
    private func waitUntilDue() -> Bool {
        condition.withLock {
            while !isClosed, finished < wakeAt { condition.wait() }
            wakeAt = .max
            return !isClosed
        }
    }

    private func sleepForStep(of log: Log?) {
        condition.withLock { wakeAt = started + planner.step(written: started - (log?.base ?? started)) }
    }

    /// False when there is nothing to do now.
    private func prepareChunk(of log: inout Log?) -> Bool {
        guard var current = log, !current.hasFailed, let file = current.file else { return false }
        let chunk = condition.withLock { () -> Range<Int>? in
            // Not before a record that was begun after the file is whole, and RocksDB has synced it: it is there, and
            // the files before this one are on disk. Syncing zeros syncs RocksDB's records, too, and were they on
            // disk before the end of the file before, a crash would leave a log that nobody can tell from a damaged
            // one.
            guard !isClosed, !isAwaited, synced > current.seen else { return nil }
            let next = planner.next(written: started - current.base, prepared: current.prepared)
            if let next { limit = current.base + next.lowerBound }
            return next
        }
        guard let chunk else { return false }
        do {
            if try Self.isWritten(file, from: chunk.lowerBound - 4096, through: chunk.upperBound) {
                current.hasFailed = true
            } else {
                try file.write(Self.zeros.span.extracting(0..<chunk.count), at: chunk.lowerBound)
                try Failpoint.logAfterZeros.passOrFail()
                try file.syncData()
                current.prepared = chunk.upperBound
            }
        } catch {
            current.hasFailed = true
        }
        condition.withLock {
            limit = .max
            condition.broadcast()
        }
        log = current
        return !current.hasFailed
    }

    /// Whatever was counted: where RocksDB has written there are bytes, and between them and zeros to come there is a
    /// gap.
    private static func isWritten(_ file: OpenFile, from start: Int, through end: Int) throws(StoreError) -> Bool {
        var bytes = [UInt8](repeating: 0, count: end - start)
        let count = try file.read(into: &bytes, at: start)
        return bytes[..<count].contains { $0 != 0 }
    }

    private static let zeros = [UInt8](repeating: 0, count: PreparingPlanner.chunkBytes)
}
