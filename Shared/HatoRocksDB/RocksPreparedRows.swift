import HatoStorage
import Synchronization

/// Rows in a file of RocksDB's own format, made and synced before their turn. The writer only ingests the file (3 to 30
/// ms for a million rows; one by one they took 1.7 s).
///
/// **Atomic with its commit.** Ingesting a file is a separate step, after the batch that holds the commit (record,
/// version, other rows). So the batch also notes, under `taking`, which files belong to it, and is synced first; an
/// opening after a crash between the two steps finds the note and ingests the files then. The state between the steps
/// is not visible: snapshots are taken after both, and copies wait for them. The next batch removes the note. Ingesting
/// rows twice changes nothing unless something was written in between; in that case the note is gone.
///
/// **Two copies.** RocksDB moves the file and writes into it before it is known whether the ingestion succeeds: after a
/// crash at that moment it does not ingest the same file again. So it is given a copy; the original stays until its
/// copy is certainly ingested.
final class RocksPreparedRows: PreparedRows {
    let byteCount: Int
    /// Nil when there are no rows.
    let path: String?
    private let state = Atomic<State>(.waiting)

    private enum State: UInt8, AtomicRepresentable {
        case waiting
        /// The rows belong to a commit, or are about to; their file must stay, since only it says so.
        case taken
        case inPlace
    }

    init(_ path: String?, byteCount: Int) {
        self.path = path
        self.byteCount = byteCount
    }

    deinit {
        guard let path else { return }
        switch state.load(ordering: .acquiring) {
        case .waiting:
            try? Files.remove(path)
            try? Files.remove(Self.copy(of: path))
        case .taken: break
        case .inPlace: try? Files.remove(path)
        }
    }

    /// The path of the copy of `path` that RocksDB is given.
    static func copy(of path: String) -> String { path + ".copy" }

    /// Only a store's writer calls this.
    func noteTaken() {
        precondition(
            state.exchange(.taken, ordering: .acquiringAndReleasing) == .waiting, "prepared rows are taken once")
    }

    /// Notes that RocksDB has ingested the rows.
    func noteInPlace() { state.store(.inPlace, ordering: .releasing) }
}

/// The files of rows that are being prepared, or wait for their commit; all in one folder of the store.
final class PreparedFiles: Sendable {
    private static let note = "taking"

    private let folder: String
    /// The prefix of the names of this opening's files: it distinguishes them from files of earlier openings, which a
    /// note may still name.
    private let prefix = String(UInt64.random(in: .min ... .max), radix: 36)
    private let last = Atomic<UInt64>(0)

    /// Ingests the files that a crash has left for their commit, and removes the others. Runs before any write.
    init(_ folder: String, recovering database: RocksDatabase) throws(StoreError) {
        self.folder = folder
        try Files.createFolder(folder)
        if try Self.hasNote(database) {
            let waiting = try Self.waiting(in: folder, for: database)
            for path in waiting { try makeCopy(of: path) }
            try database.takeFiles(waiting.map(RocksPreparedRows.copy))
            try database.setAboutStore(Self.note, [])
        }
        for name in try Files.names(in: folder) { try Files.remove("\(folder)/\(name)") }
    }

    /// The files of commits that the database has, which may not be ingested yet.
    static func waiting(in folder: String, for database: RocksDatabase) throws(StoreError) -> [String] {
        // A file that no longer exists is ingested: files are removed only then.
        try names(in: database.aboutStore(note) ?? []).map { "\(folder)/\($0)" }.filter(Files.exists)
    }

    private static func hasNote(_ database: RocksDatabase) throws(StoreError) -> Bool {
        try database.aboutStore(note)?.isEmpty == false
    }

    /// The name of a file that does not exist.
    func newPath() -> String { "\(folder)/\(prefix)-\(last.wrappingAdd(1, ordering: .relaxed).newValue).sst" }

    /// Prepares a finished file for ingestion; the file and its copy are on disk when this returns.
    func makeCopy(of path: String) throws(StoreError) {
        let copy = RocksPreparedRows.copy(of: path)
        try Files.remove(copy)
        try Files.copyFile(path, to: copy)
        try Files.syncFolder(of: path)
    }

    /// The note of a batch about the files that belong to it.
    static func note(of rows: [RocksPreparedRows]) -> [UInt8] {
        let names = rows.compactMap { $0.path?.split(separator: "/").last }
        return Array(names.joined(separator: "\n").utf8)
    }

    private static func names(in note: [UInt8]) -> [Substring] {
        String(decoding: note, as: UTF8.self).split(separator: "\n")
    }

    static let noteKey = Array(note.utf8)
}

/// Writes one file of rows.
final class PreparedFileWriter: StoreWriting {
    private let file: NativeFileWriter
    private var order = PreparedOrder()
    private var phase = TransactionPhase()
    private var failure: StoreError?
    private(set) var byteCount = 0
    /// The first and the last key of the file.
    private var lower: [UInt8]?
    private var upper: [UInt8] = []

    init(_ path: String, memory: RocksDBMemory) throws(StoreError) { file = try NativeFileWriter(path, memory: memory) }

    func put(_ key: Span<UInt8>, _ value: Span<UInt8>) {
        guard begins(key) else { return }
        order.check(key)
        byteCount += value.count
        trying { () throws(StoreError) in try file.put(key, value) }
    }

    func delete(_ key: Span<UInt8>) {
        guard begins(key) else { return }
        order.check(key)
        trying { () throws(StoreError) in try file.delete(key) }
    }

    func deleteRange(_ range: KeyRange) {
        guard !range.isEmpty, begins(range.lower.span) else { return }
        order.checkRange()
        let upper = range.upper ?? RocksDatabase.endOfKeys
        if self.upper.span.precedes(upper.span) { self.upper = upper }
        trying { () throws(StoreError) in try file.deleteRange(range.lower, upper) }
    }

    /// The file is on disk when this returns; nil when there are no rows.
    func finish() throws(StoreError) -> (lower: [UInt8], upper: [UInt8])? {
        if let problem = phase.problem ?? failure { throw problem }
        guard let lower else { return nil }
        try file.finish()
        return (lower, upper)
    }

    private func begins(_ key: Span<UInt8>) -> Bool {
        guard phase.willWrite(key: key), failure == nil else { return false }
        byteCount += key.count
        if lower.map({ key.precedes($0.span) }) ?? true { lower = Array(key) }
        if upper.span.precedes(key) { upper = Array(key) }
        return true
    }

    private func trying(_ step: () throws(StoreError) -> Void) {
        do { try step() } catch { failure = error }
    }
}
