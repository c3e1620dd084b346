#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Nanoseconds of a clock that is never set. Cheaper than `ContinuousClock`, for what is measured thousands of times a
/// second.
package func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    guard clock_gettime(CLOCK_MONOTONIC, &time) == 0 else { return 0 }
    return UInt64(clamping: time.tv_sec) &* 1_000_000_000 &+ UInt64(clamping: time.tv_nsec)
}

/// The nanoseconds from `start` to now; 0 when the clock says less.
package func nanoseconds(since start: UInt64) -> Int {
    let now = monotonicNanoseconds()
    return now > start ? Int(clamping: now - start) : 0
}
