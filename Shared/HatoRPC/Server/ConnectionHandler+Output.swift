import HatoModel
import NIOCore

// What leaves: answers whose turn has come and notifications gather in one buffer; `flush` writes it once.

extension ConnectionHandler {
    /// Takes the response of a request, or of an entry of a batch.
    func answered(_ ticket: RequestTicket, _ response: [UInt8]?, isError: Bool) {
        if isError { hub.count { $0.errors += 1 } }
        let wasLarge = ticket.isRead && largeReads.answered(ticket)
        leave(ticket.sequence, machine.requestAnswered(ticket, response))
        if wasLarge { machine.outgrownReadAnswered() }
    }

    func leave(_ sequence: UInt64, _ completion: ConnectionStateMachine.Completion) {
        switch completion {
        case .gathered: return
        case .leaves(let response): emit(sequence, response)
        case .queued: while let (sequence, response) = machine.nextResponse() { emit(sequence, response) }
        }
    }

    private func emit(_ sequence: UInt64, _ response: [UInt8]?) {
        if let response {
            output.append(line: response)
            machine.outputAppended(response.count + 1)
            connection.addUnsent(response.count + 1)
        }
        largeReads.left(sequence, end: output.appendedBytes)
        guard !opened.isEmpty else { return }
        for notification in opened.answered(sequence) { write(notification) }
    }

    // MARK: Notifications

    /// Notifications to `subscription` wait until the answer of the request that opened it has left.
    func subscriptionOpened(_ subscription: String, by sequence: UInt64) {
        if machine.isUnanswered(sequence) { opened.open(subscription, by: sequence) }
    }

    func deliver(_ notification: OutgoingNotification) {
        if !opened.hold(notification) { write(notification) }
    }

    /// Its bytes were counted as unsent when it was posted: the difference to what is written is settled here.
    private func write(_ notification: OutgoingNotification) {
        let written = output.append(notification)
        machine.outputAppended(written)
        connection.addUnsent(written - notification.byteCount)
        hub.count { $0.notificationsSent += 1 }
    }

    // MARK: The socket

    /// One write for all that has gathered, or for a piece of a large text. While the socket has not taken the last
    /// one, more gathers: a peer that does not read costs the bytes it is sent, not a buffer for each of them.
    func flush() {
        guard let context else { return }
        // A socket that has room takes a write at once.
        while writesUnderWay == 0, machine.phase != .closed, let write = output.next() { give(write, context) }
    }

    private func give(_ write: OutputQueue.Write, _ context: ChannelHandlerContext) {
        let count = write.count
        hub.count { $0.bytesWritten += count }
        writtenBytes += count
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in self.sent(write) }
        writesUnderWay += 1
        for buffer in write.buffers { context.write(wrapOutboundOut(buffer), promise: nil) }
        context.writeAndFlush(wrapOutboundOut(write.last), promise: promise)
    }

    /// What was shared is kept up to here.
    private func sent(_ write: OutputQueue.Write) {
        writesUnderWay -= 1
        sentBytes += write.count
        machine.outputDrained(write.count)
        connection.subtractUnsent(write.releasedBytes, shared: write.releasedSharedBytes)
        settle()
    }
}
