#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The number of files that this process may have open (`RLIMIT_NOFILE`).
struct OpenFilesLimit: Sendable, Hashable {
    /// The limit before raising it.
    var before: Int
    /// The current limit.
    var now: Int

    /// Raises the soft limit to the hard one. Where the system does not allow it, the limit stays as it was.
    static func raised() -> OpenFilesLimit {
        var limit = rlimit()
        guard get(&limit) else { return OpenFilesLimit(before: 1_024, now: 1_024) }
        let before = Int(clamping: limit.rlim_cur)
        var raised = limit
        raised.rlim_cur = limit.rlim_max
        guard limit.rlim_cur < limit.rlim_max, set(&raised) else { return OpenFilesLimit(before: before, now: before) }
        return OpenFilesLimit(before: before, now: Int(clamping: raised.rlim_cur))
    }

    private static func get(_ limit: inout rlimit) -> Bool {
        #if canImport(Glibc)
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        #else
            getrlimit(RLIMIT_NOFILE, &limit) == 0
        #endif
    }

    private static func set(_ limit: inout rlimit) -> Bool {
        #if canImport(Glibc)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        #else
            setrlimit(RLIMIT_NOFILE, &limit) == 0
        #endif
    }
}
