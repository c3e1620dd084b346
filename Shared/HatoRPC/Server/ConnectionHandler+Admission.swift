import HatoModel
import NIOCore
import NIOSSL

// What a connection says to `ConnectionGate`, and how it ends when another takes its slot.

/// The activity of a connection without a credential, in ticks: the gate's lock is not taken for each read.
struct ActivityTicks {
    /// Two connections that are silent for about as long are not told apart.
    static let interval = TimeAmount.milliseconds(500)

    private var last: NIODeadline?

    /// Whether activity at this time is worth saying.
    mutating func isDue(at now: NIODeadline) -> Bool {
        if let last, now - last < Self.interval { return false }
        last = now
        return true
    }
}

extension ConnectionHandler {
    var hasShownCredential: Bool { shownCaller != nil }

    /// A credential of this caller was verified.
    func showed(_ caller: Caller) {
        guard shownCaller == nil else { return }
        shownCaller = caller
        takeOwnSlot()
    }

    /// Called for each read as long as the connection has no slot of its own.
    func noteActivity() {
        guard activity.isDue(at: .now()) else { return }
        // Others of the same user may have closed.
        takeOwnSlot()
        if !hasOwnSlot { server.admission.wasActive(connection) }
    }

    private func takeOwnSlot() {
        if let shownCaller { hasOwnSlot = server.admission.showedCredential(connection, of: shownCaller) }
    }

    /// Closes at once. The peer is told why if its socket takes one line more: nothing waits for it.
    func cutOff(_ error: RPCError) {
        guard let context else { return }
        // Its last response is on its way to a peer that may never take it.
        guard machine.isTaking else { return closeNow() }
        if writesUnderWay == 0, output.isEmpty, context.channel.isWritable {
            let line = Response.bytes(id: "null", error: error) + [UInt8(ascii: "\n")]
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: line)), promise: nil)
        }
        machine.refused()
        lines.removeAll()
        context.closeWithoutTLSEnd()
    }
}

extension ChannelHandlerContext {
    /// TLS would wait for the peer's own end, and keep the socket for as long.
    fileprivate func closeWithoutTLSEnd() {
        if let tls = try? pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            tls.close(promise: nil)
        } else {
            close(promise: nil)
        }
    }
}
