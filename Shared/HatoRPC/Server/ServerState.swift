import HatoModel
import Logging
import NIOCore
import NIOPosix
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
    /// Runs what would keep a loop too long on another thread.
    let runElsewhere: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let nextConnection = Atomic<UInt64>(1)

    init(
        _ configuration: RPCServerConfiguration, methods: [String: RPCMethod], authenticator: any Authenticator,
        logger: Logger,
        runElsewhere: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { body in
            NIOThreadPool.singleton.submit { _ in body() }
        }
    ) {
        self.runElsewhere = runElsewhere
        limits = configuration.limits
        now = configuration.now
        self.methods = methods
        self.authenticator = authenticator
        self.logger = logger
        budget = ProcessBudget(
            limit: configuration.limits.processBytesInFlightMax,
            clientMax: configuration.limits.clientBytesInFlightMax)
        admission = Admission(
            connectionsMax: configuration.limits.connectionsMax,
            perAddressMax: configuration.limits.connectionsPerAddressMax)
    }

    func newConnectionID() -> UInt64 {
        nextConnection.wrappingAdd(1, ordering: .relaxed).oldValue
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
