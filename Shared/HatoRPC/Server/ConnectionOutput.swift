import HatoModel
import NIOCore

/// Sends what leaves one connection, in order: responses whose turn has come, and notifications.
///
/// They gather in one queue, of which `flush` writes as much as the socket takes. On the event loop only.
final class ConnectionOutput {
    private let state: ConnectionState
    private let largeReads: LargeReadRunner
    private var queue = OutputQueue()
    private var opened = OpenedSubscriptions()
    private var writesUnderWay = 0
    /// Bytes given to the socket, and those of them whose writes are done.
    private(set) var writtenBytes = 0
    private(set) var sentBytes = 0

    init(_ state: ConnectionState, _ largeReads: LargeReadRunner) {
        self.state = state
        self.largeReads = largeReads
    }

    /// Where in the output the last text ends that connections share.
    var sharedEnd: Int { queue.sharedEnd }
    /// Whether nothing waits to be written.
    var isEmpty: Bool { queue.isEmpty }
    /// Whether the socket has not taken everything it was given.
    var isWriting: Bool { writesUnderWay > 0 }

    // MARK: Responses

    /// A response goes where the machine says.
    func leave(_ sequence: UInt64, _ completion: ConnectionStateMachine.Completion) {
        switch completion {
        case .gathered: return
        case .leaves(let response): append(sequence, response)
        case .queued: while let (sequence, response) = state.machine.nextResponse() { append(sequence, response) }
        }
    }

    private func append(_ sequence: UInt64, _ response: [UInt8]?) {
        if let response {
            queue.append(line: response)
            state.machine.outputAppended(response.count + 1)
            state.connection.addUnsent(response.count + 1)
        }
        largeReads.left(sequence, end: queue.appendedBytes)
        guard !opened.isEmpty else { return }
        for notification in opened.responded(sequence) { append(notification) }
    }

    // MARK: Notifications

    /// Notifications to `subscription` wait until the response of the request that opened it has left.
    func subscriptionOpened(_ subscription: String, by sequence: UInt64) {
        if state.machine.awaitsResponse(sequence) { opened.open(subscription, by: sequence) }
    }

    func deliver(_ notification: OutgoingNotification) {
        if !opened.hold(notification) { append(notification) }
    }

    /// Its bytes were counted as unsent when it was posted: the difference to what is written is settled here.
    private func append(_ notification: OutgoingNotification) {
        let written = queue.append(notification)
        state.machine.outputAppended(written)
        state.connection.addUnsent(written - notification.byteCount)
        state.hub.count { $0.notificationsSent += 1 }
    }

    // MARK: The socket

    /// One write for all that has gathered, or for a piece of a large text. While the socket has not taken the last
    /// one, more gathers: a peer that does not read costs the bytes it is sent, not a buffer for each of them.
    func flush(_ context: ChannelHandlerContext) {
        // A socket that is not full takes a write at once.
        while writesUnderWay == 0, state.machine.phase != .closed, let write = queue.next() { give(write, context) }
    }

    private func give(_ write: OutputQueue.Write, _ context: ChannelHandlerContext) {
        let count = write.count
        state.hub.count { $0.bytesWritten += count }
        writtenBytes += count
        let promise = context.eventLoop.makePromise(of: Void.self)
        let (released, releasedShared, shared) = (write.releasedBytes, write.releasedSharedBytes, write.shared)
        promise.futureResult.assumeIsolated().whenComplete { result in
            // Otherwise each response that a lost peer cannot take would let the next of its requests start.
            if case .failure = result { self.state.connection.handler?.peerIsLost() }
            // What was shared is kept up to here.
            withExtendedLifetime(shared) { self.sent(count, released, shared: releasedShared) }
        }
        writesUnderWay += 1
        for buffer in write.buffers { context.write(NIOAny(buffer), promise: nil) }
        context.writeAndFlush(NIOAny(write.last), promise: promise)
    }

    private func sent(_ count: Int, _ released: Int, shared: Int) {
        writesUnderWay -= 1
        sentBytes += count
        state.machine.outputDrained(count)
        state.connection.subtractUnsent(released, shared: shared)
        state.connection.handler?.settle()
    }

    /// The connection has closed.
    func removeAll() {
        queue = OutputQueue()
        opened = OpenedSubscriptions()
    }
}
