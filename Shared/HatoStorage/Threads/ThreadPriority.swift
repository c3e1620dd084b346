#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Lowers the priority of the calling thread: it gets a third of a processor's time that another thread of the process
/// gets beside it. So what takes long leaves the time to event loops, the writer and short reads, and does not stand
/// still while they are busy.
package func lowerThreadPriority() {
    #if os(Linux)
        // PRIO_PROCESS, which the C libraries import under different types; on Linux it means the calling thread only.
        _ = setpriority(0, 0, 5)
    #endif
}
