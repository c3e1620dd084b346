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
    /// For how many seconds the peer has stalled while reads of its own waited.
    private var secondsWithWaitingReads = 0
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
        let time = TimeAmount.seconds(Int64(state.server.limits.peerLookSeconds))
        let connection = state.connection
        watch = state.hub.loop.assumeIsolated().scheduleTask(in: time) { connection.handler?.peerIsDue() }
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
        let limits = state.server.limits
        let taken = takenBytes(channel)
        stall.sampled(taken: taken, limits)
        let isStalled = stall.isBehind(by: limits.stalledPeerSecondsMax, limits)
        secondsWithWaitingReads =
            isStalled && largeReads.hasWaitingReads ? secondsWithWaitingReads + limits.peerLookSeconds : 0
        // Not left out when the peer has stalled: what they count goes on.
        let keepsEvents = stall.events.sampled(at: sharedEvents, limits) >= limits.awaitedEventSecondsMax
        let keepsResults = stall.results.areOverdue(at: heldResults, taken: taken, limits)
        // A read that waits keeps the store from forgetting what was overwritten since.
        let isTooLongParked = secondsWithWaitingReads > limits.parkedReadSecondsMax
        if keepsEvents || keepsResults || isStalled && (isTooLongParked || isAwaited) { return true }
        settled(channel)
        return false
    }

    private var heldResults: PeerStall.HeldMemory? {
        largeReads.heldEnd.map { end in
            PeerStall.HeldMemory(
                sent: output.sentBytes, end: end,
                isAwaited: state.server.budget.isAwaitedByReads(state.connection.id, of: memory.account))
        }
    }

    private var sharedEvents: PeerStall.HeldMemory? {
        let connection = state.connection
        guard connection.holdsSharedEvents else { return nil }
        return PeerStall.HeldMemory(
            sent: output.sentBytes, end: output.sharedEnd,
            isAwaited: state.server.budget.areEventsAwaited(butBy: connection.id))
    }

    private var isAwaited: Bool {
        let connection = state.connection
        return state.server.budget.isAwaited(
            connection.id, of: memory.account, holdsEvents: connection.holdsSharedEvents)
    }
}
