import Foundation
import HatoStorage
import Synchronization

/// A few threads for work that takes a core for a tenth of a second, with a short queue in which clients take turns
/// (`HashingQueue`).
///
/// Memory and waiting time are bounded whatever the number of sign-ins (unbounded hashing has brought down larger
/// services). Event loops and the cooperative pool never hash.
final class HashingPool: Sendable {
    /// The queue has no place for the job, or lost it to another; or its client has gone.
    struct Refused: Error {}

    /// Runs or refuses one call; exactly one of the two is called.
    private struct Job {
        var run: @Sendable () -> Void
        var refuse: @Sendable () -> Void
        /// Whether the outcome reaches no client any more.
        var isUnwanted: @Sendable () -> Bool
    }

    private struct State {
        var running = 0
        var queue: HashingQueue<Job>
    }

    private let threads: Int
    private let state: Mutex<State>

    /// - Parameter clientsMax: clients whose last turns are remembered.
    init(threads: Int, queueMax: Int, clientsMax: Int) {
        self.threads = max(1, threads)
        state = Mutex(State(queue: HashingQueue(countMax: max(0, queueMax), clientsMax: clientsMax)))
    }

    var waitingCount: Int { state.withLock { $0.queue.count } }
    var runningCount: Int { state.withLock { $0.running } }

    /// Runs `work` on a thread of the pool. Throws what `work` throws, or `Refused`: at once when the queue is full,
    /// later when the queue loses the job or when the client has gone before the job runs.
    func run<Outcome: Sendable>(
        for client: HashingClient, _ work: @escaping @Sendable () throws -> Outcome
    ) async throws -> Outcome {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(
                run: { continuation.resume(with: Result { try work() }) },
                refuse: { continuation.resume(throwing: Refused()) }, isUnwanted: client.hasGone)
            admit(job, of: client.name)
        }
    }

    /// A password of the client was checked.
    func checked(_ client: HashingClient, isRight: Bool) {
        state.withLock { $0.queue.checked(client.name, isRight: isRight) }
    }

    private func admit(_ job: Job, of client: String) {
        enum Admission {
            case start
            case wait(refused: [Job])
        }
        let admission: Admission = state.withLock { state in
            guard state.running >= threads else {
                state.running += 1
                state.queue.tookTurn(client)
                return .start
            }
            var refused: [Job] = []
            if state.queue.isFull { refused = state.queue.removeAll { $0.isUnwanted() } }
            if let job = state.queue.append(job, of: client) { refused.append(job) }
            return .wait(refused: refused)
        }
        switch admission {
        case .start: start(job)
        case .wait(let refused): for job in refused { job.refuse() }
        }
    }

    /// A thread works until the queue is empty. The cost of starting one is negligible compared with a hash.
    private func start(_ first: Job) {
        Thread.detachNewThread { [self] in
            // With as many threads as cores, hashing would otherwise delay every other call.
            lowerThreadPriority(nice: 10)
            var job: Job? = first
            while let current = job {
                if current.isUnwanted() { current.refuse() } else { current.run() }
                job = state.withLock { state in
                    let next = state.queue.takeNext()
                    if next == nil { state.running -= 1 }
                    return next
                }
            }
        }
    }
}
