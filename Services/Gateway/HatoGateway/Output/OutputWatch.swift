import HatoRPC
import NIOCore

/// The connections of one event loop that hold bytes for their peers, and what follows from it: which clients get
/// nothing before they have taken them, and which connections are closed (`UntakenShares`).
final class OutputWatch {
    private let loop: any EventLoop
    private let budget: UntakenBytes
    private unowned let loopState: LoopState
    private var holders: [Int: UntakenOutput] = [:]
    private var lastNumber = 0
    private var isLookPlanned = false

    init(_ loopState: LoopState, _ budget: UntakenBytes) {
        (self.loopState, self.budget, loop) = (loopState, budget, loopState.loop)
    }

    /// Milliseconds between two looks at connections that hold bytes.
    private static let pauseMs: Int64 = 100

    func newNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// Whether the connections to services are not read for this client.
    func isStopped(_ client: ClientAddress) -> Bool { budget.isStopped(client) }

    func changed(_ output: UntakenOutput, to bytes: Int) {
        holders[output.number] = bytes > 0 ? output : nil
        if budget.changed(holder(output), of: output.client, to: bytes) { reportChange() }
        planLook()
    }

    private func holder(_ output: UntakenOutput) -> UntakenShares.Holder {
        UntakenShares.Holder(loop: loopState.peers.index, number: output.number)
    }

    private func reportChange() {
        // In a later turn: this one may be inside a call of what hears of it.
        loopState.peers.performEverywhere { $0.outputChanged() }
    }

    private func planLook() {
        guard !isLookPlanned, !holders.isEmpty else { return }
        isLookPlanned = true
        loop.assumeIsolated().scheduleTask(in: .milliseconds(Self.pauseMs)) { [weak self] in self?.lookAtAll() }
    }

    private func lookAtAll() {
        isLookPlanned = false
        for output in Array(holders.values) { output.look() }
        planLook()
        guard budget.stopsClients else { return }
        for output in holders.values where output.isStopped {
            budget.looked(at: holder(output), taken: output.takenBytes, waiting: output.waitingBytes)
        }
        let (hasChanged, overdue) = budget.review()
        if hasChanged { reportChange() }
        for holder in overdue where holder.loop == loopState.peers.index {
            guard let output = holders[holder.number] else { continue }
            loopState.metrics.unreadConnectionClosed()
            output.close()
        }
    }
}
