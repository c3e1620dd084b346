public import HatoStorage

/// Restores a backup, offline: turns a folder that `BackupFolder` wrote into one that a service can be started on.
///
/// Nothing is changed before the backup and the data folder have been checked. Then the backup, which stays as it is,
/// is copied to `store.restoring` in the data folder. The copy is compared with the list of what was written, and its
/// tables with their checksums, since earlier versions also backed up a damaged store. It is opened there, which gives
/// it an epoch of its own, and read completely: every row, and every kept record of a commit, without a gap. Only then
/// it gets the name `store`, in one step. So the data folder holds all of it or nothing; the next attempt removes what
/// a crash left. The copy is made inside the data folder, not beside it: the folder is often a mounted volume, whose
/// name cannot be given to something else.
extension RocksDBStore {
    /// The result of a restore.
    public struct Restored: Sendable, Hashable {
        /// The version of the newest commit of the backup.
        public var version: UInt64
        /// The new epoch of the restored store.
        public var epoch: StoreEpoch
    }

    /// The store's folder in a service's data folder.
    public static func folder(in data: String) -> String { data + "/store" }

    /// Restores the backup in the folder `backup`, which must be one of `service`, into `data`, which must be empty or
    /// missing, without the rows of `options.restoredWithout`. Throws `.locked` when a running service or another
    /// restore uses the data folder, `.newerFormat`, `.lostCommits` and `.corrupted` for a backup that cannot be used,
    /// and `.io` for everything else.
    public static func restore(
        backup: String, of service: String, to data: String, options: RocksDBOptions = RocksDBOptions()
    ) throws(StoreError) -> Restored {
        try checkBackup(backup, of: service)
        let isNew = !Files.exists(data)
        try Files.createFolder(data)
        do throws(StoreError) {
            return try restoreChecked(backup, to: data, options)
        } catch {
            if isNew { Files.removeEmptyFolder(data) }
            throw error
        }
    }

    private static func checkBackup(_ backup: String, of service: String) throws(StoreError) {
        let names = Set(try Files.names(in: backup))
        guard names.contains("format") else { throw .io("\(backup) is no backup: it holds no file named format") }
        try StoreFolder.checkFormat(backup + "/format")
        guard names.contains("copy") else {
            throw .io("\(backup) is no backup but a store in use: it has been opened since it was written")
        }
        try BackupContents.checkNames(names, of: backup)
        if try BackupContents.isBeingOpened(backup) {
            throw .io("\(backup) is no backup but a store: it has been opened since it was written")
        }
        guard let owner = try BackupFolder.service(of: backup) else {
            throw .io("\(backup) is no backup of a service: it holds no file that names it")
        }
        guard owner == service else { throw .io("\(backup) is a backup of \(owner), not of \(service)") }
    }

    private static func restoreChecked(
        _ backup: String, to data: String, _ options: RocksDBOptions
    ) throws(StoreError) -> Restored {
        let (target, draft) = (folder(in: data), folder(in: data) + ".restoring")
        try checkIsFree(data, besides: draft)
        try Files.createFolder(draft)
        let hold = try OpenFile(draft, access: .read)
        guard try hold.lock() else { throw .locked("another restore into \(data) is under way") }
        // The lock lasts as long as this value.
        defer { withExtendedLifetime(hold) {} }
        do throws(StoreError) {
            try Files.removeContents(of: draft)
            try Files.copyFolder(backup, to: draft, except: ["service", "lock"])
            try BackupContents.check(draft, name: backup)
            try checkTables(draft, of: backup)
            try BackupContents.noteOpening(draft)
            try RowRemoval.remove(options.restoredWithout, from: draft, options)
            let restored = try verify(draft, options)
            guard try Files.renameFolder(draft, to: target) else { throw notEmpty(data, holds: "store") }
            return restored
        } catch {
            Files.removeFolder(draft)
            throw error
        }
    }

    private static func checkTables(_ draft: String, of backup: String) throws(StoreError) {
        let damage = try TableCheck.damage(ofCopy: draft + "/rocksdb") { _ in }
        guard case .corrupted(let text)? = damage.first?.naming(backup, insteadOf: draft) else { return }
        throw .corrupted("\(text); it was damaged already when it was backed up: restore an older backup")
    }

    private static func checkIsFree(_ data: String, besides draft: String) throws(StoreError) {
        let names = try Files.names(in: data).filter { $0 != "lost+found" && "\(data)/\($0)" != draft }
        guard let name = names.first else { return }
        let lock = folder(in: data) + "/lock"
        if Files.exists(lock), try !OpenFile(lock, access: .read).lock() {
            throw .locked("\(data) is in use by a running service; stop it, and restore into a new folder")
        }
        throw notEmpty(data, holds: name)
    }

    private static func notEmpty(_ data: String, holds name: String) -> StoreError {
        .io("\(data) is not empty (it holds \(name)); restore into a new or an empty folder")
    }

    /// Opens the copy and reads all of it.
    private static func verify(_ folder: String, _ options: RocksDBOptions) throws(StoreError) -> Restored {
        let store = try RocksDBStore.open(folder: folder, options: options)
        defer { store.close() }
        do {
            try store.snapshot().scan(.all, reverse: false) { _, _ in .next }
        } catch let error as StoreError {
            throw error
        } catch {
            throw .corrupted("\(error)")
        }
        var position = (store.keptCommits.oldest ?? 1) - 1
        while position < store.version {
            guard let newest = try store.commits(after: position, limit: 1_000).last else {
                throw .corrupted("the records of the commits after \(position) are missing")
            }
            position = newest.version
        }
        return Restored(version: store.version, epoch: store.epoch)
    }
}
