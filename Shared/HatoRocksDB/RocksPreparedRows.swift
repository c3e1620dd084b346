import HatoStorage
import Synchronization

/// Rows in a file of RocksDB's own format, made and synced before their turn. The writer only puts the file in its place
/// (3 to 30 ms for a million rows, which one by one took 1.7 s).
///
/// **Atomic with its commit.** Putting a file in its place is a step of its own, after the batch that holds the commit
/// (record, version, other rows). So the batch also notes, under `taking`, which files belong to it, and is synced first;
/// whoever opens the store after a crash between the two steps finds the note and takes the files then. Nobody sees the
/// state between: snapshots are taken after both steps, and copies wait for them. The next batch takes the note back.
/// Taking a file twice changes nothing, as long as nothing was written in between; and nothing was, or the note is gone.
final class RocksPreparedRows: PreparedRows {
    let byteCount: Int
    /// Nil when there are no rows.
    let path: String?
    /// The file belongs to a commit, or is about to; it must not be removed from here.
    private let isTaken = Atomic<Bool>(false)

    init(_ path: String?, byteCount: Int) {
        self.path = path
        self.byteCount = byteCount
    }

    deinit {
        if let path, !isTaken.load(ordering: .acquiring) { try? Files.remove(path) }
    }

    /// Only a store's writer says this.
    func noteTaken() {
        precondition(!isTaken.exchange(true, ordering: .acquiringAndReleasing), "prepared rows are taken once")
    }
}

/// The files of rows that are being prepared, or wait for their commit; all in one folder of the store.
final class PreparedFiles: Sendable {
    private static let note = "taking"

    private let folder: String
    private let last = Atomic<UInt64>(0)

    /// Takes what a crash has left untaken, and removes what it left for nobody. Before anybody writes.
    init(_ folder: String, recovering database: RocksDatabase) throws(StoreError) {
        self.folder = folder
        try Files.createFolder(folder)
        if let note = try database.aboutStore(Self.note), !note.isEmpty {
            // What is not there any more has been taken: only then files go away.
            let paths = Self.names(in: note).map { "\(folder)/\($0)" }.filter(Files.exists)
            try database.takeFiles(paths)
            try database.setAboutStore(Self.note, [])
        }
        for name in try Files.names(in: folder) { try Files.remove("\(folder)/\(name)") }
    }

    /// The name of a file that is not there.
    func newPath() -> String { "\(folder)/\(last.wrappingAdd(1, ordering: .relaxed).newValue).sst" }

    func sync(_ path: String) throws(StoreError) { try Files.syncFolder(of: path) }

    /// What a batch notes of the files that belong to it.
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
    /// The first and the last key that is touched.
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

    /// The file is on disk when this returns; nil when there are no rows for one.
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
