import Foundation

enum Progress {
    static func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}

/// Nanoseconds that only go forward.
enum Clock {
    static func now() -> UInt64 { nanoseconds(CLOCK_MONOTONIC) }

    /// The processor time of this process.
    static func processorTime() -> UInt64 { nanoseconds(CLOCK_PROCESS_CPUTIME_ID) }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

enum Blocking {
    /// Runs blocking work on a thread of its own, because the tasks' threads are few. Profiles show it by its name.
    static func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                Thread.current.name = "bench"
                continuation.resume(with: Result { try body() })
            }
        }
    }
}

enum OpenFiles {
    /// Thousands of connections are opened here and in the stacks, which inherit the limit.
    static func raiseLimit() throws {
        #if canImport(Darwin)
            let resource = RLIMIT_NOFILE
        #else
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { throw BenchError("no limit of open files") }
        limit.rlim_cur = min(limit.rlim_max, 20_000)
        guard setrlimit(resource, &limit) == 0 else { throw BenchError("the limit of open files stays") }
    }
}
