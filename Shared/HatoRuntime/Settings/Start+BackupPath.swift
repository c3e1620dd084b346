import HatoRPC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

extension ServiceProcess.Start {
    /// The folder for backups: the setting `backup-dir`, or the folder `name` in it; nil when it is not set.
    ///
    /// The folder is created with the first backup. If that is impossible, this throws `SettingsError` at the start,
    /// not at the first backup.
    public func backupPath(in name: String? = nil) throws(SettingsError) -> String? {
        guard let folder = settings.text("backup-dir") else { return nil }
        try Self.checkBackupFolder(folder)
        guard let name else { return folder }
        try Self.checkBackupFolder("\(folder)/\(name)")
        return "\(folder)/\(name)"
    }

    private static func checkBackupFolder(_ path: String) throws(SettingsError) {
        var existing = path
        while true {
            if let stream = opendir(existing) {
                closedir(stream)
                break
            }
            let problem = errno
            guard problem == ENOENT, let parent = folder(above: existing) else {
                if problem == ENOTDIR, access(path, F_OK) == 0 {
                    throw SettingsError("setting backup-dir: \(path) is a file; give a folder")
                }
                throw SettingsError("setting backup-dir: \(path) cannot be used: \(FileProblem.words(problem))")
            }
            existing = parent
        }
        guard access(existing, W_OK | X_OK) == 0 else {
            throw SettingsError(
                "setting backup-dir: nothing can be written in \(existing): \(FileProblem.words(errno))")
        }
    }

    /// The parent folder of a path; nil when there is none.
    private static func folder(above path: String) -> String? {
        guard path != "/", path != "." else { return nil }
        guard let slash = path.dropLast().lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
