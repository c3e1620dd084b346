import HatoModel
import Logging
import NIOCore
import Synchronization

/// What all connections of a server share.
final class ServerState: Sendable {
    let limits: RPCLimits
    let methods: [String: RPCMethod]
    let authenticator: any Authenticator
    let logger: Logger
    let now: @Sendable () -> Int64
    let budget: ProcessBudget
    let admission: Admission
    private let nextConnection = Atomic<UInt64>(1)

    init(
        _ configuration: RPCServerConfiguration, methods: [String: RPCMethod], authenticator: any Authenticator,
        logger: Logger
    ) {
        limits = configuration.limits
        now = configuration.now
        self.methods = methods
        self.authenticator = authenticator
        self.logger = logger
        budget = ProcessBudget(limit: configuration.limits.processBytesInFlightMax)
        admission = Admission(
            connectionsMax: configuration.limits.connectionsMax,
            perAddressMax: configuration.limits.connectionsPerAddressMax)
    }

    func newConnectionID() -> UInt64 {
        nextConnection.wrappingAdd(1, ordering: .relaxed).oldValue
    }
}

/// The bytes that all connections together hold: requests read, entries of batches whose turn has not come, and answers
/// that are not sent or not taken.
///
/// Above the limit connections stop reading, and requests that read do not start: nobody knows how large their answers
/// will be. Each connection leaves a callback that is called once when there is room again. If all of it were held by
/// unfinished lines, or by requests that wait, nothing would ever be given back: one connection at a time may go on
/// reading until its line is complete, and one at a time may start a request that reads.
final class ProcessBudget: Sendable {
    private let limit: Int
    private let used = Atomic(0)
    private let isOverdrawn = Atomic(false)
    private let isReadOverdrawn = Atomic(false)
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    init(limit: Int) { self.limit = limit }

    var usedBytes: Int { used.load(ordering: .relaxed) }

    var isExceeded: Bool { used.load(ordering: .relaxed) > limit }

    func add(_ change: Int) {
        let (before, after) = used.wrappingAdd(change, ordering: .sequentiallyConsistent)
        if before > limit, after <= limit { resumeAll() }
    }

    func takeOverdraft() -> Bool {
        isOverdrawn.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    func returnOverdraft() {
        isOverdrawn.store(false, ordering: .sequentiallyConsistent)
        resumeAll()
    }

    /// Whether a request that reads may start although the limit is exceeded; whoever gets true returns it when the
    /// request is answered.
    func takeReadOverdraft() -> Bool {
        isReadOverdrawn.compareExchange(expected: false, desired: true, ordering: .sequentiallyConsistent).exchanged
    }

    func returnReadOverdraft() {
        isReadOverdrawn.store(false, ordering: .sequentiallyConsistent)
        resumeAll()
    }

    /// Also when the overdraft for a request that reads is free again.
    func whenAReadMayStart(_ resume: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append(resume) }
        if !isExceeded || !isReadOverdrawn.load(ordering: .sequentiallyConsistent) { resumeAll() }
    }

    func whenThereIsRoom(_ resume: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append(resume) }
        // Room may have come between the caller's look and the append.
        if !isExceeded { resumeAll() }
    }

    private func resumeAll() {
        let resumed = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for resume in resumed { resume() }
    }
}

/// Counts connections, in all and by address.
final class Admission: Sendable {
    private struct State {
        var total = 0
        var byAddress: [String: Int] = [:]
    }

    private let connectionsMax: Int
    private let perAddressMax: Int
    private let state = Mutex(State())

    init(connectionsMax: Int, perAddressMax: Int) {
        self.connectionsMax = connectionsMax
        self.perAddressMax = perAddressMax
    }

    /// False when there are too many; nothing is counted then.
    func enter(_ address: String) -> Bool {
        state.withLock { state in
            let same = state.byAddress[address, default: 0]
            guard state.total < connectionsMax, same < perAddressMax else { return false }
            state.total += 1
            state.byAddress[address] = same + 1
            return true
        }
    }

    func leave(_ address: String) {
        state.withLock { state in
            state.total -= 1
            let same = state.byAddress[address, default: 1] - 1
            state.byAddress[address] = same > 0 ? same : nil
        }
    }
}
