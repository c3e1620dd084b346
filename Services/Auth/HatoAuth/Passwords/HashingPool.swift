import Foundation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A few threads for work that takes a core for a tenth of a second, with a short queue.
///
/// A call that finds the queue full fails at once: memory and waiting time are bounded whatever the number of sign-ins
/// (unbounded hashing has brought down larger services). Event loops and the cooperative pool never hash.
final class HashingPool: Sendable {
    struct Full: Error {}

    private struct State {
        var running = 0
        var waiting: [@Sendable () -> Void] = []
        /// The start of the queue in `waiting`.
        var next = 0

        var waitingCount: Int { waiting.count - next }

        mutating func takeNext() -> (@Sendable () -> Void)? {
            guard next < waiting.count else { return nil }
            let job = waiting[next]
            next += 1
            if next == waiting.count {
                waiting.removeAll(keepingCapacity: true)
                next = 0
            }
            return job
        }
    }

    private let threads: Int
    private let queueMax: Int
    private let state = Mutex(State())

    init(threads: Int, queueMax: Int) {
        self.threads = max(1, threads)
        self.queueMax = max(0, queueMax)
    }

    var waitingCount: Int { state.withLock { $0.waitingCount } }
    var runningCount: Int { state.withLock { $0.running } }

    /// Runs `work` on a thread of the pool. Throws `Full` at once when the queue is full, otherwise what `work` throws.
    func run<Outcome: Sendable>(_ work: @escaping @Sendable () throws -> Outcome) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            let isAccepted = admit { continuation.resume(with: Result { try work() }) }
            if !isAccepted { continuation.resume(throwing: Full()) }
        }
    }

    private func admit(_ job: @escaping @Sendable () -> Void) -> Bool {
        enum Admission { case start, wait, refuse }
        let admission: Admission = state.withLock { state in
            if state.running < threads {
                state.running += 1
                return .start
            }
            guard state.waitingCount < queueMax else { return .refuse }
            state.waiting.append(job)
            return .wait
        }
        if admission == .start { start(job) }
        return admission != .refuse
    }

    /// A thread works until the queue is empty. The cost of starting one is negligible compared with a hash.
    private func start(_ first: @escaping @Sendable () -> Void) {
        Thread.detachNewThread { [self] in
            Self.giveWay()
            var job: (@Sendable () -> Void)? = first
            while let current = job {
                current()
                job = state.withLock { state in
                    let next = state.takeNext()
                    if next == nil { state.running -= 1 }
                    return next
                }
            }
        }
    }

    /// Lowers the thread's priority: with as many threads as cores, hashing would delay every other call; event loops
    /// and the store's writer take precedence.
    private static func giveWay() {
        #if os(Linux)
            // PRIO_PROCESS, which the C libraries import under different types; on Linux it means the calling thread
            // only.
            _ = setpriority(0, 0, 10)
        #endif
    }
}
