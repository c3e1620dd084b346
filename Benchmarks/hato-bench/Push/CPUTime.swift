import Foundation

/// The processor time of another process.
enum CPUTime {
    /// In seconds. Throws when the process has ended, and where there is no such clock.
    static func seconds(of process: Int32) throws -> Double {
        #if os(Linux)
            var clock = clockid_t()
            var time = timespec()
            guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else {
                throw BenchError("process \(process) has no clock")
            }
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        #else
            throw BenchError("the processor time of other processes is measured on Linux only")
        #endif
    }
}
