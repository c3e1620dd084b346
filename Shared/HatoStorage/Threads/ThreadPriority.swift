#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Lowers the priority of the calling thread: beside a thread of normal priority on the same processor it gets about a
/// third of the time that the other one gets. So long work leaves most of the time to event loops, the writer and short
/// reads, and still makes progress while they are busy. Without effect on other systems than Linux.
package func lowerThreadPriority() {
    #if os(Linux)
        // PRIO_PROCESS, which the C libraries import under different types; on Linux it means the calling thread only.
        _ = setpriority(0, 0, 5)
    #endif
}
