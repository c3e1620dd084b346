import HatoStorage
import Synchronization
import TestStores

/// A memory store whose reader threads stand still: a test lets one reading run when it pleases, on its own thread.
final class SteppedStore: WrappedStore {
    let memory: MemoryStore
    private let reads = Mutex<[@Sendable () -> Void]>([])
    /// Groups that were handed to observers and not taken yet.
    private let groups = Mutex<[CommitGroup]>([])

    init() throws {
        var limits = StoreLimits()
        limits.readerThreads = 1
        memory = try MemoryStore(limits: limits)
        memory.observeCommits { [weak self] group in
            self?.groups.withLock { $0.append(group) }
        } ended: { _ in
        }
    }

    /// Runs a write and waits for it, on the calling thread.
    func commit<Outcome: Sendable>(
        _ body: @escaping @Sendable (any StoreTransaction) throws -> Outcome
    ) throws -> Committed<Outcome> {
        let latch = Latch()
        let answer = Mutex<Result<Committed<Outcome>, any Error>?>(nil)
        memory.submit(body) { result in
            answer.withLock { $0 = result }
            latch.open()
        }
        latch.wait()
        guard let result = answer.withLock({ $0 }) else { throw StoreError.closed(cause: nil) }
        return try result.get()
    }

    func takeGroups() -> [CommitGroup] {
        groups.withLock { groups in
            defer { groups = [] }
            return groups
        }
    }

    var waitingReads: Int { reads.withLock { $0.count } }

    func runRead(_ index: Int) {
        let body = reads.withLock { $0.remove(at: index) }
        body()
    }

    var store: any Store { memory }

    func submitRead(of client: String?, isLong: Bool, _ body: @escaping @Sendable () -> Void) {
        reads.withLock { $0.append(body) }
    }
}
