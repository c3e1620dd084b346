import HatoStorage

/// Writes zeros ahead of RocksDB into the newest file of its log, so that syncing what RocksDB writes there changes
/// neither the file's size nor its allocated blocks: such a sync takes half as long, since the file system has no
/// metadata to write.
///
/// **RocksDB's bytes are never overwritten.** RocksDB writes at its own offset in the file, from 0 on, and writes only
/// on calls of the store's writer. Before each write the writer says how many bytes it may take at most (`willWrite`),
/// so the offset is known to be below the total written since the file was last known not to exist. Zeros are written
/// only above that; while zeros are being written, only a write that might reach them waits.
///
/// **A file that is no longer the newest** holds fewer bytes than were counted: zeros after them do no harm, also when
/// RocksDB has cut and closed it. A removed file is still open; it is never created here, and its number is never used
/// again.
///
/// **Readers of a prepared log.** RocksDB skips zeros (record type 0 is reserved for this). The difference is a record
/// torn by a crash: instead of the end of the file it is followed by zeros, and RocksDB would take them for damage.
/// `LogEnd` distinguishes the two, and `TornLog` cuts it before the store is opened. A copy of a log that is made while
/// it is written may hold later writes without earlier ones: see `LogEnd.cutCopy`. Nothing is prepared before a first
/// record is complete in the file, since RocksDB reads that one when it lists its log.
///
/// **Failure.** This is an optimisation: when zeros cannot be written or synced, the file is left alone from then on.
/// If a failed sync may have lost bytes of RocksDB, the operating system reports this to every holder of the open file.
///
/// The thread starts with the first bytes that make it worthwhile, and sleeps until the writer has written some more.
///
/// `@unchecked Sendable`: every variable is guarded by `condition`.
final class LogPreparer: @unchecked Sendable {
    /// One file of the log; belongs to the preparing thread.
    private struct Log {
        let number: UInt64
        let file: OpenFile?
        /// A lower bound of `started` when the file was created.
        let base: Int
        /// The value of `started` when the file was first seen.
        let seen: Int
        /// The file is prepared up to this offset.
        var prepared = 0
        var hasFailed: Bool
    }

    private let folder: String
    private let planner: PreparingPlanner
    private let condition = ThreadCondition()
    private let hasEnded = Latch()
    /// The maximum number of bytes that RocksDB was asked to write to the log; the last write may not be finished.
    private var started = 0
    /// The value of `started` at the end of the last finished write.
    private var finished = 0
    /// The value of `finished` at the last sync of the whole log.
    private var synced = 0
    /// The number of finished writes.
    private var writes = 0
    /// The upper bound of `started` while zeros are being written.
    private var limit = Int.max
    /// Whether a write waits for zeros: then no more are begun.
    private var isAwaited = false
    /// The value of `finished` that wakes the thread.
    private var wakeAt = PreparingPlanner.gapBytes
    private var hasThread = false
    private var isClosed = false

    /// - Parameters:
    ///   - folder: the folder of a database that was just opened, and whose log is new.
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

    // MARK: The writer, one write at a time

    /// Announces a write of RocksDB and waits while zeros that it might reach are being written.
    ///
    /// - Parameter bytes: the bytes of the record. The log takes more: 7 for each part of a block of 32 KiB, and up to
    ///   6 that are left over at the end of the block.
    ///
    /// Returns the number of chunks of zeros it waited for: never more than one, which may be partly written already.
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
            // Without a thread the log is not prepared.
            condition.withLock {
                hasThread = false
                wakeAt = .max
            }
            hasEnded.open()
        }
    }

    /// Notes that everything written is on disk. No write runs meanwhile.
    func didSync() { condition.withLock { synced = finished } }

    // MARK: The thread

    private func run() {
        defer { hasEnded.open() }
        var log: Log?
        // The totals of finished writes before the files were last listed.
        var known = (bytes: 0, writes: 0)
        while waitUntilDue() {
            defer { sleepForStep(of: log) }
            let before = condition.withLock { (bytes: finished, writes: writes) }
            // When listing fails, the last time a file was known not to exist stays the same.
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

    /// Returns false when the thread must end.
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

    /// Returns false when there is nothing to do now.
    private func prepareChunk(of log: inout Log?) -> Bool {
        guard var current = log, !current.hasFailed, let file = current.file else { return false }
        let chunk = condition.withLock { () -> Range<Int>? in
            // Waits until a record that was begun after the file is whole and RocksDB has synced it: then the record is
            // there, and the files before this one are on disk. Syncing zeros syncs RocksDB's records too; if these
            // were on disk before the end of the previous file, a crash would leave a log that cannot be distinguished
            // from a damaged one.
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

    /// Checks the file itself, independently of the counts: where RocksDB has written there are non-zero bytes, and
    /// between them and new zeros there is a gap.
    private static func isWritten(_ file: OpenFile, from start: Int, through end: Int) throws(StoreError) -> Bool {
        var bytes = [UInt8](repeating: 0, count: end - start)
        let count = try file.read(into: &bytes, at: start)
        return bytes[..<count].contains { $0 != 0 }
    }

    private static let zeros = [UInt8](repeating: 0, count: PreparingPlanner.chunkBytes)
}
