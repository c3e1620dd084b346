import HatoRPC

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The folder that holds everything a service keeps: keys, secrets, what people wrote.
public enum DataFolder {
    /// Makes the folder and those above it where they are missing, and sees to it that what the process makes from now
    /// on is for its user alone. Throws `SettingsError` that names the setting `data`.
    public static func make(_ path: String) throws(SettingsError) {
        _ = umask(0o077)
        try makeFolder(path)
        guard access(path, W_OK | X_OK) == 0 else {
            throw SettingsError("setting data: nothing can be written in \(path): \(FileProblem.words(errno))")
        }
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
