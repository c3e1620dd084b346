import Foundation

enum Progress {
    static func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}

/// Nanoseconds that only go forward.
enum Clock {
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
