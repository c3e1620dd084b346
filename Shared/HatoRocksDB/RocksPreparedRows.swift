import HatoStorage
import Synchronization

/// Rows in a file of RocksDB's own format, made and synced before their turn. The writer only puts the file in its
/// place (3 to 30 ms for a million rows, which one by one took 1.7 s).
///
/// **Atomic with its commit.** Putting a file in its place is a step of its own, after the batch that holds the
/// commit (record, version, other rows). So the batch also notes, under `taking`, which files belong to it, and is
/// synced first; whoever opens the store after a crash between the two steps finds the note and takes the files then.
/// Nobody sees the state between: snapshots are taken after both steps, and copies wait for them. The next batch
/// takes the note back. Taking rows twice changes nothing, as long as nothing was written in between; and nothing
/// was, or the note is gone.
///
/// **Two copies.** RocksDB makes the file its own and writes into it where it stands, before it is known whether it
/// will keep it: after a crash in that moment it does not take the same file again. It is given a copy; the rows
/// themselves stay until their copy is surely in place.
final class RocksPreparedRows: PreparedRows {
    let byteCount: Int
    /// Nil when there are no rows.
    let path: String?
    private let state = Atomic<State>(.waiting)

    private enum State: UInt8, AtomicRepresentable {
        case waiting
        /// They belong to a commit, or are about to, and only their file may tell it.
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

    /// What RocksDB is given of the rows at `path`.
    static func copy(of path: String) -> String { path + ".copy" }

    /// Only a store's writer says this.
    func noteTaken() {
        precondition(
            state.exchange(.taken, ordering: .acquiringAndReleasing) == .waiting, "prepared rows are taken once")
    }

    /// RocksDB has them for good.
    func noteInPlace() { state.store(.inPlace, ordering: .releasing) }
}

/// The files of rows that are being prepared, or wait for their commit; all in one folder of the store.
final class PreparedFiles: Sendable {
    private static let note = "taking"

    private let folder: String
    /// Begins the names of this opening's files: none is ever mistaken for one of an earlier opening, whose name a note
    /// may still hold.
    private let prefix = String(UInt64.random(in: .min ... .max), radix: 36)
    private let last = Atomic<UInt64>(0)

    /// Takes what a crash has left untaken, and removes what it left for nobody. Before anybody writes.
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

    /// The files whose commit the database has, and that it may not have.
    static func waiting(in folder: String, for database: RocksDatabase) throws(StoreError) -> [String] {
        // What is not there any more is in its place: only then files go away.
        try names(in: database.aboutStore(note) ?? []).map { "\(folder)/\($0)" }.filter(Files.exists)
    }

    private static func hasNote(_ database: RocksDatabase) throws(StoreError) -> Bool {
        try database.aboutStore(note)?.isEmpty == false
    }

    /// The name of a file that is not there.
    func newPath() -> String { "\(folder)/\(prefix)-\(last.wrappingAdd(1, ordering: .relaxed).newValue).sst" }

    /// Makes a finished file ready to be taken; both it and its copy are on disk when this returns.
    func makeCopy(of path: String) throws(StoreError) {
        let copy = RocksPreparedRows.copy(of: path)
        try Files.remove(copy)
        try Files.copyFile(path, to: copy)
        try Files.syncFolder(of: path)
    }

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
