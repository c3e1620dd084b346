import HatoStorage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Where backups go: a folder each, under the one the operator chose and nowhere else.
struct BackupFolder: Sendable {
    private let folder: String

    init(_ folder: String) { self.folder = folder }

    /// Writes a copy of the store. On a reader thread: it takes as long as it takes.
    func write(_ name: String, of store: any Store) throws {
        let path = folder + "/" + name
        if access(path, F_OK) == 0 { throw NotifierError.backupExists(name) }
        if mkdir(folder, 0o700) != 0, errno != EEXIST {
            throw StoreError.io("\(folder): \(String(cString: strerror(errno)))")
        }
        try store.backup(to: path)
    }
}
