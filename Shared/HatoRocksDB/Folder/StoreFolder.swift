import HatoStorage
import Synchronization

/// The folder of one store, used by one process.
///
/// - `format`: the version of the layout, as text; written last when a store is created, read first when it is opened.
///   In format 1 no row of messages held several values.
/// - `lock`: locked while the store is open.
/// - `answered`: see `AcknowledgedFile`.
/// - `service`: the service that owns the data, e.g. `messages`.
/// - `copy`: exists in a backup until it is first opened, which gives it an epoch of its own; see `BackupContents`.
/// - `rocksdb/`: the database.
/// - `prepared/`: rows that wait for their commit; see `RocksPreparedRows`.
/// - `copying/`: the database as links while a backup is taken or its tables are checked.
/// - `room`: exists for a moment during every start; see `checkFreeSpace`.
final class StoreFolder: Sendable {
    static let format = 2

    let path: String
    /// Whether creating the folder has not been completed.
    let isNew: Bool
    private let lock: Mutex<OpenFile?>
    private let answered = Mutex<AcknowledgedFile?>(nil)

    var databasePath: String { path + "/rocksdb" }
    var preparedPath: String { path + "/prepared" }
    var copyingPath: String { path + "/copying" }

    init(opening path: String) throws(StoreError) {
        self.path = path
        try Files.createFolder(path)
        let names = Set(try Files.names(in: path))
        isNew = !names.contains("format")
        if isNew {
            if names.contains("copy") { throw .corrupted("\(path) is a backup that was not written to its end") }
            let foreign = names.subtracting([
                "lock", "answered", "answered.new", "format.new", "rocksdb", "prepared", "copying", "service",
                "service.new",
                "lost+found",
            ])
            if let name = foreign.min() {
                throw .io(
                    "\(path) is no store, and not empty (it holds \(name)): a new store wants a folder of its own")
            }
        } else {
            try Self.checkFormat(path + "/format")
        }
        let lock = try OpenFile(path + "/lock", access: .create)
        guard try lock.lock() else { throw .locked("\(path) is open in another process, or twice in this one") }
        // A store whose creation was not completed has acknowledged nothing.
        if isNew, let answered = try? AcknowledgedFile.read(path + "/answered"), answered > 0 {
            throw Self.formatIsMissing(path, commits: answered)
        }
        self.lock = Mutex(lock)
    }

    /// Throws when the data belongs to another service; data without an owner becomes `service`'s.
    func belong(to service: String) throws(StoreError) {
        guard let owner = try BackupFolder.service(of: path) else {
            return try BackupFolder.note(service, in: path)
        }
        if owner != service {
            throw .io("\(path) is a store of \(owner), not of \(service); give each service a folder of its own")
        }
    }

    /// The error for a store that has commits but no format file: it is damaged, and must not be created anew.
    static func formatIsMissing(_ path: String, commits: UInt64) -> StoreError {
        .corrupted(
            "\(path)/format is missing, and the store holds \(commits) commits; nothing was lost: put the file back as "
                + "it was (its text is \"hato-store \(format)\" and a line break), or restore a backup")
    }

    /// Throws when `path` names no format, or a newer one; otherwise returns the format.
    @discardableResult
    static func checkFormat(_ path: String) throws(StoreError) -> Int {
        let text = String(decoding: try Files.read(path), as: UTF8.self)
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 2, words[0] == "hato-store", let found = Int(words[1]), found > 0 else {
            throw .corrupted("\(path) does not name the format of a store")
        }
        if found > format { throw .newerFormat(found: found, supported: format) }
        return found
    }

    /// Raises the format before rows are written that earlier versions cannot read.
    func raiseFormat() throws(StoreError) {
        let file = path + "/format"
        if try Self.checkFormat(file) < Self.format { try Self.writeFormat(in: path) }
    }

    /// Throws when the disk is full. Opening writes the rows of the log to tables, and a RocksDB that is built with
    /// assertions (Debian's) aborts the process, without a message about the disk, when a file that it began does not
    /// fit.
    func checkFreeSpace() throws(StoreError) {
        let file = path + "/room"
        defer { for name in [file, file + ".new"] { try? Files.remove(name) } }
        try Files.write([UInt8](repeating: 0, count: 1 << 20), to: file)
    }

    /// The highest version that may have been acknowledged; 0 for a new store.
    func readAcknowledged() throws(StoreError) -> UInt64 {
        if isNew { return 0 }
        return try AcknowledgedFile.read(path + "/answered")
    }

    /// Creates the missing files of a new store; `format` comes last, so that a store is there completely or not at
    /// all.
    func finishCreating() throws(StoreError) {
        try AcknowledgedFile.create(path + "/answered", version: 0)
        try Self.writeFormat(in: path)
        try Files.syncFolder(of: path)
    }

    func resetAcknowledged(to version: UInt64) throws(StoreError) {
        try AcknowledgedFile.create(path + "/answered", version: version)
    }

    /// Allows calls of `noteAcknowledged` from now on.
    func startAcknowledging() throws(StoreError) {
        let file = try AcknowledgedFile(path + "/answered")
        answered.withLock { $0 = file }
    }

    func noteAcknowledged(_ version: UInt64) throws(StoreError) {
        guard let file = answered.withLock({ $0 }) else { throw .closed(cause: nil) }
        try file.note(version)
    }

    var isCopy: Bool { Files.exists(path + "/copy") }

    /// Throws when the copy is not as it was written.
    func checkCopy() throws(StoreError) { try BackupContents.check(path, name: path) }

    /// Notes that the files of the copy may change from now on.
    func noteOpeningCopy() throws(StoreError) { try BackupContents.noteOpening(path) }

    func forgetItIsACopy() throws(StoreError) { try Files.remove(path + "/copy") }

    /// Releases the folder's lock.
    func close() {
        let file = answered.withLock { $0.take() }
        try? file?.sync()
        let lock = lock.withLock { $0.take() }
        _ = lock
    }

    /// Adds the files of a backup to the database that `copyDatabase` writes, which returns its version; the backup
    /// opens as a store only when all of it is there.
    static func writeBackup(
        to path: String, copyDatabase: (_ folder: String) throws(StoreError) -> UInt64
    ) throws(StoreError) -> UInt64 {
        try Files.createNewFolder(path)
        try Files.write([], to: path + "/copy")
        let version = try copyDatabase(path + "/rocksdb")
        try AcknowledgedFile.create(path + "/answered", version: version)
        try BackupContents.write(in: path)
        try writeFormat(in: path)
        try Files.syncFolder(of: path)
        return version
    }

    private static func writeFormat(in folder: String) throws(StoreError) {
        try Files.write(Array("hato-store \(format)\n".utf8), to: folder + "/format")
    }
}
