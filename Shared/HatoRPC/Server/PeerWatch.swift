import HatoModel
import NIOCore

/// Watches whether one peer takes what is sent to it, while others wait for the memory that this holds or reads of its
/// own wait for too long (`PeerStall`). On the event loop only.
final class PeerWatch {
    private let state: ConnectionState
    private let memory: ConnectionMemory
    private let largeReads: LargeReadRunner
    private let output: ConnectionOutput
    private var stall = PeerStall()
    /// Looks in a row at which the peer had stalled while reads of its own waited.
    private var looksWithParkedReads = 0
    /// There while the socket has not taken everything.
    private var watch: Scheduled<Void>?

    init(
        _ state: ConnectionState, _ memory: ConnectionMemory, _ largeReads: LargeReadRunner, _ output: ConnectionOutput
    ) {
        self.state = state
        self.memory = memory
        self.largeReads = largeReads
        self.output = output
    }

    /// Called when the connection has settled: begins to watch a peer whose socket is full.
    func settled(_ channel: (any Channel)?) {
        guard output.isWriting else {
            if watch != nil { cancel() }
            return
        }
        guard watch == nil, state.machine.phase != .closed else { return }
        stall.filled(taken: takenBytes(channel))
        let patience = TimeAmount.seconds(Int64(state.server.limits.stalledPeerSecondsMax))
        let connection = state.connection
        watch = state.hub.loop.assumeIsolated().scheduleTask(in: patience) { connection.handler?.peerIsDue() }
    }

    /// The socket has taken everything, or the connection has closed.
    func cancel() {
        stall.drained()
        watch?.cancel()
        watch = nil
    }

    private func takenBytes(_ channel: (any Channel)?) -> Int {
        AcknowledgedBytes.taken(of: output.writtenBytes, by: channel)
    }

    /// Called when the watch is due. Returns whether the peer is to be cut off; else the next watch begins.
    func hasStalled(_ channel: (any Channel)?) -> Bool {
        watch = nil
        let isStalled = stall.looked(taken: takenBytes(channel), state.server.limits)
        looksWithParkedReads = isStalled && largeReads.hasParked ? looksWithParkedReads + 1 : 0
        // Not left out when the peer has stalled: what it counts goes on.
        let keepsEvents = stall.looked(at: sharedEvents, state.server.limits)
        if keepsEvents || isStalled && (isTooLongParked || isAwaited) { return true }
        settled(channel)
        return false
    }

    private var sharedEvents: PeerStall.SharedEvents? {
        let connection = state.connection
        guard connection.holdsSharedEvents else { return nil }
        return PeerStall.SharedEvents(
            sent: output.sentBytes, end: output.sharedEnd,
            isAwaited: state.server.budget.areEventsAwaited(butBy: connection.id))
    }

    private var isAwaited: Bool {
        let connection = state.connection
        return state.server.budget.isAwaited(
            connection.id, of: memory.account, holdsEvents: connection.holdsSharedEvents)
    }

    /// A read that waits keeps the store from forgetting what was overwritten since.
    private var isTooLongParked: Bool {
        let limits = state.server.limits
        return looksWithParkedReads > limits.parkedReadSecondsMax / max(1, limits.stalledPeerSecondsMax)
    }
}
