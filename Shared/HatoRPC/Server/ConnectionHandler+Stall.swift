import HatoModel
import Logging
import NIOCore

// A peer that does not take what is sent to it, while others wait for the memory that this holds, is cut off; so is one
// that lets reads of its own wait for too long.

extension ConnectionHandler {
    /// Called when the connection has settled: begins to watch a peer whose socket is full.
    func watchPeer() {
        guard writesUnderWay > 0 else {
            if stallWatch != nil { peerDrained() }
            return
        }
        guard stallWatch == nil, machine.phase != .closed else { return }
        stall.filled(taken: takenBytes())
        let patience = TimeAmount.seconds(Int64(server.limits.stalledPeerSecondsMax))
        stallWatch = hub.loop.assumeIsolated().scheduleTask(in: patience) { [weak self] in self?.lookAtPeer() }
    }

    func peerDrained() {
        stall.drained()
        stallWatch?.cancel()
        stallWatch = nil
    }

    private func takenBytes() -> Int { AcknowledgedBytes.taken(of: writtenBytes, by: context?.channel) }

    private func lookAtPeer() {
        stallWatch = nil
        let hasStalled = stall.looked(taken: takenBytes(), server.limits)
        looksWithParkedReads = hasStalled && largeReads.hasParked ? looksWithParkedReads + 1 : 0
        guard hasStalled, isTooLongParked || isAwaited else { return watchPeer() }
        cutOffStalled(RPCError.peerStalled)
    }

    private var isAwaited: Bool {
        server.budget.isAwaited(connection.id, of: account, holdsEvents: connection.holdsSharedEvents)
    }

    /// A read that waits keeps the store from forgetting what was overwritten since.
    private var isTooLongParked: Bool {
        looksWithParkedReads > server.limits.parkedReadSecondsMax / max(1, server.limits.stalledPeerSecondsMax)
    }

    /// Lets go of everything the connection holds. What the socket takes of the last line says why; the response it
    /// has taken a part of ends with the line before.
    private func cutOffStalled(_ error: RPCError) {
        guard let context else { return }
        server.logger.debug("cut off a peer that takes nothing", metadata: ["peer": "\(connection.remoteAddress)"])
        hub.count { $0.stalledPeers += 1 }
        machine.cutOff()
        let (channel, server, connection) = (context.channel, server, connection)
        channel.closeFuture.whenComplete { _ in server.admission.closed(connection) }
        guard machine.isTaking else { return closeNow() }
        var last = ByteBuffer(string: "\n")
        last.writeBytes(Response.bytes(id: "null", error: error))
        last.writeString("\n")
        context.writeAndFlush(wrapOutboundOut(last)).whenComplete { _ in channel.close(promise: nil) }
        let patience = TimeAmount.seconds(Int64(server.limits.stalledPeerSecondsMax))
        let end = hub.loop.scheduleTask(in: patience) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in end.cancel() }
        ended()
    }
}
