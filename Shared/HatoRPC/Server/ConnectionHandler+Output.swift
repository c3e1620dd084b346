import HatoModel
import NIOCore

// What leaves: answers whose turn has come and notifications gather in one buffer; `flush` writes it once.

extension ConnectionHandler {
    /// Takes the answer of a request, or of an entry of a batch.
    func answered(_ ticket: RequestTicket, _ response: [UInt8]?, isError: Bool) {
        requestsInFlight -= 1
        bytesInFlight -= ticket.byteCount
        if !ticket.isSlow { running -= 1 }
        if ticket.isBarrier { isBarrierRunning = false }
        if ticket.isRead {
            readsInFlight -= 1
            if readsInFlight == 0 { returnReadOverdraft() }
        }
        if isError { hub.count { $0.errors += 1 } }
        guard let entry = ticket.entry else { return complete(ticket.sequence, response) }
        gather(ticket.sequence, entry, response)
    }

    /// Takes the answer of an entry of a batch.
    func gather(_ sequence: UInt64, _ entry: Int, _ response: [UInt8]?) {
        guard let batch = batches[sequence] else { return }
        gatheredBytes -= batch.byteCount
        batch.set(entry, response)
        gatheredBytes += batch.byteCount
        completeBatchIfDone(sequence)
    }

    func completeBatchIfDone(_ sequence: UInt64) {
        guard let batch = batches[sequence], batch.isDone else { return }
        batches[sequence] = nil
        gatheredBytes -= batch.byteCount
        complete(sequence, batch.bytes)
    }

    func complete(_ sequence: UInt64, _ response: [UInt8]?) {
        if responses.answer(sequence, response) { emit(sequence, response) }
        while let (sequence, response) = responses.next() { emit(sequence, response) }
        responses.shrink()
    }

    private func emit(_ sequence: UInt64, _ response: [UInt8]?) {
        if let response {
            makeRoom(for: response.count)
            output.writeBytes(response)
            output.writeInteger(UInt8(ascii: "\n"))
            connection.addUnsent(response.count + 1)
            outputCount += response.count + 1
        }
        guard !openers.isEmpty else { return }
        openers = openers.filter { $0.value != sequence }
        for notification in held.removeValue(forKey: sequence) ?? [] { write(notification) }
    }

    // MARK: Notifications

    /// Notifications to `subscription` wait until the answer of the request that opened it has left.
    func subscriptionOpened(_ subscription: String, by sequence: UInt64) {
        if responses.isOpen(sequence) { openers[subscription] = sequence }
    }

    func deliver(_ notification: OutgoingNotification) {
        if !openers.isEmpty, let sequence = openers[notification.subscription] {
            held[sequence, default: []].append(notification)
        } else {
            write(notification)
        }
    }

    /// Its bytes were counted as unsent when it was posted: the difference to what is written is settled here.
    private func write(_ notification: OutgoingNotification) {
        makeRoom(for: notification.byteCount)
        let before = output.readableBytes
        output.writeStaticString("{\"jsonrpc\":\"2.0\",\"method\":\"")
        output.writeString(notification.method)
        output.writeStaticString("\",\"params\":{\"subscription\":\"")
        output.writeString(notification.subscription)
        output.writeStaticString("\"")
        if !notification.members.bytes.isEmpty {
            output.writeStaticString(",")
            output.writeBytes(notification.members.bytes)
        }
        output.writeStaticString("}}\n")
        let written = output.readableBytes - before
        connection.addUnsent(written - notification.byteCount)
        outputCount += written
        hub.count { $0.notificationsSent += 1 }
    }

    // MARK: The socket

    /// One write for all that has gathered. While the socket has not taken the last one, more gathers: a peer that does
    /// not read costs the bytes it is sent, not a buffer for each of them.
    func flush() {
        guard outputCount > 0, let context, phase != .closed else { return }
        guard writesUnderWay == 0 || phase != .open else { return }
        let count = outputCount
        let full = output
        output = ByteBuffer()
        outputCount = 0
        hub.count { $0.bytesWritten += count }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in self.sent(count) }
        writesUnderWay += 1
        context.writeAndFlush(wrapOutboundOut(full), promise: promise)
    }

    private func sent(_ count: Int) {
        writesUnderWay -= 1
        connection.subtractUnsent(count)
        settle()
    }

    /// A large buffer is not grown by copying: what is full is written, and the next one begins.
    private func makeRoom(for count: Int) {
        guard output.readableBytes > 0, output.readableBytes + count > 256 << 10, let context else {
            if output.capacity == 0 { output = ByteBufferAllocator().buffer(capacity: max(count + 1, 512)) }
            return
        }
        context.write(wrapOutboundOut(output), promise: nil)
        output = ByteBufferAllocator().buffer(capacity: max(count + 1, 4_096))
    }
}
