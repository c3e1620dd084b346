#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Why a file cannot be used, in the operating system's words ("permission denied"): for messages to operators, where
/// libraries' own errors have numbers and names of types.
public enum FileProblem {
    /// Why `path` cannot be read as a file; nil when it can.
    public static func ofReading(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return words(errno) }
        defer { close(descriptor) }
        // Not by reading: what is taken from a pipe is gone.
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return words(errno) }
        return status.st_mode & S_IFMT == S_IFDIR ? words(EISDIR) : nil
    }

    /// What an error number of the operating system means, beginning in lower case.
    public static func words(_ errorNumber: Int32) -> String {
        let text = String(cString: strerror(errorNumber))
        return text.prefix(1).lowercased() + text.dropFirst()
    }
}
