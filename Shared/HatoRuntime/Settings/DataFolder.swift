import HatoRPC
import Logging

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The folder of all data of a service: keys, secrets, user data.
public enum DataFolder {
    /// Creates the folder and its missing parents with mode 0700; files that the process creates later are accessible
    /// to its user only. Returns a warning for the operator about an existing folder. Throws `SettingsError` that names
    /// the setting `data`, also for a folder that belongs to another user or that others may write.
    public static func make(_ path: String) throws(SettingsError) -> String? {
        _ = umask(0o077)
        try makeFolder(path)
        guard access(path, W_OK | X_OK) == 0 else {
            throw SettingsError("setting data: nothing can be written in \(path): \(FileProblem.words(errno))")
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw SettingsError("setting data: \(path) cannot be examined: \(FileProblem.words(errno))")
        }
        let access = DataFolderAccess(owner: UInt32(status.st_uid), mode: UInt32(status.st_mode))
        let holdsStore = stat("\(path)/store", &status) == 0
        switch access.verdict(for: UInt32(geteuid()), path, holdsStore: holdsStore) {
        case .safe: return nil
        case .warning(let text): return text
        case .refused(let text): throw SettingsError("setting data: \(text)")
        }
    }

    /// Throws `SettingsError` when the folder at `path` has no store, but its parent has one: earlier versions kept it
    /// there, and the service would create an empty one.
    static func refuseStoreAbove(_ path: String) throws(SettingsError) {
        guard access("\(path)/store", F_OK) != 0 else { return }
        var parts = path.split(separator: "/", omittingEmptySubsequences: true)
        _ = parts.popLast()
        let above = (path.hasPrefix("/") ? "/" : "./") + parts.map { "\($0)/" }.joined()
        let isStore = ["format", "rocksdb"].contains { access("\(above)store/\($0)", F_OK) == 0 }
        guard isStore else { return }
        let moved = ["store", "auth-keys.json"].filter { access("\(above)\($0)", F_OK) == 0 }
        let files = moved.map { "'\(above)\($0)'" }.joined(separator: " ")
        throw SettingsError(
            "setting data: \(path) has no store, but \(above)store is the store of an earlier version; "
                + "run: mkdir -p -m 700 '\(path)' && mv \(files) '\(path)/'")
    }

    private static func makeFolder(_ path: String) throws(SettingsError) {
        if mkdir(path, 0o700) == 0 { return }
        if errno == ENOENT, let slash = path.dropLast().lastIndex(of: "/"), slash != path.startIndex {
            try makeFolder(String(path[..<slash]))
            if mkdir(path, 0o700) == 0 { return }
        }
        if errno == EEXIST {
            guard let stream = opendir(path) else {
                let problem = errno == ENOTDIR ? "is a file; give a folder" : "is closed: \(FileProblem.words(errno))"
                throw SettingsError("setting data: \(path) \(problem)")
            }
            closedir(stream)
            return
        }
        throw SettingsError("setting data: the folder \(path) cannot be made: \(FileProblem.words(errno))")
    }
}

/// The owner and the mode of a data folder, and whether they are safe.
///
/// A folder that others own or may write is refused: they could replace data that the service trusts. A folder that
/// others may only list or enter causes a warning, since each file in it is accessible to the service's user only. The
/// mode of an existing folder is never changed, since other programs may use it.
struct DataFolderAccess: Sendable, Hashable {
    enum Verdict: Sendable, Hashable {
        case safe
        case warning(String)
        case refused(String)
    }

    /// The user id of the owner.
    var owner: UInt32
    /// The permission bits.
    var mode: UInt32

    init(owner: UInt32, mode: UInt32) {
        self.owner = owner
        self.mode = mode & 0o777
    }

    /// The verdict on the folder at `path` for a service that runs as `user`. When the folder holds a store, no other
    /// folder is recommended: the service would create an empty store there.
    func verdict(for user: UInt32, _ path: String, holdsStore: Bool = false) -> Verdict {
        let below = holdsStore ? "" : "give a folder below it, which the service makes, such as \(path)/hato, or "
        guard owner == user else {
            return .refused(
                "\(path) belongs to user \(owner), but the service runs as user \(user); \(below)run: "
                    + "chown \(user) \(path)")
        }
        let octal = "0" + String(mode, radix: 8)
        guard mode & 0o022 == 0 else {
            return .refused(
                "other users may write in \(path) (mode \(octal)); \(below)run: chmod 700 \(path)")
        }
        guard mode & 0o055 == 0 else {
            return .warning("setting data: other users may list \(path) (mode \(octal)); run: chmod 700 \(path)")
        }
        return .safe
    }
}

extension ServiceProcess.Start {
    /// The folder of the setting `data`, created when it is missing. Throws `SettingsError`.
    public func dataFolder() throws(SettingsError) -> String {
        let path = settings["data"]
        try DataFolder.refuseStoreAbove(path)
        if let warning = try DataFolder.make(path) { logger.warning("\(warning)") }
        return path
    }
}
