#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Lowers the priority of the calling thread. So long work leaves most of the time to event loops, the writer and short
/// reads, and still makes progress while they are busy. Without effect on other systems than Linux.
///
/// - Parameter nice: beside a thread of normal priority on the same processor the thread gets about a third of the time
///   that the other one gets with 5, a tenth with 10.
package func lowerThreadPriority(nice: Int32 = 5) {
    #if os(Linux)
        // PRIO_PROCESS, which the C libraries import under different types; on Linux it means the calling thread only.
        _ = setpriority(0, 0, nice)
    #endif
}
