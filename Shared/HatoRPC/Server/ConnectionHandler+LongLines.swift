import HatoModel
import NIOCore

// Lines that take long to read: a line of 16 MiB may hold millions of values, which keep a loop for half a second and
// with it every other connection. They are read by a thread for such work; what is behind them on their connection
// waits.
//
// Such a line is charged to its client for as long as it exists, also when its connection is gone: otherwise a peer
// that closes and comes back with the next one would leave them behind for that thread, as many as it likes.

extension ConnectionHandler {
    /// A line of so many bytes takes its loop a few milliseconds.
    static let lineReadOnLoopBytesMax = 256 << 10
    /// A line of so many bytes is read also when client or process hold too much.
    static let smallLineBytesMax = 2 << 10
    /// What a line that is read elsewhere is charged for each of its bytes until it is known what its values take.
    private static let chargedPerByte = 8

    func readElsewhere(_ line: ByteBuffer) {
        machine.lineLeftLoop(line.readableBytes)
        let (connection, limits) = (connection, server.limits)
        let charged = min(line.readableBytes * Self.chargedPerByte, limits.requestMemoryBytesMax)
        let charge = server.budget.charge(max(charged, line.readableBytes), to: account)
        server.runElsewhere {
            defer { withExtendedLifetime(charge) {} }
            // Nobody would hear the answer.
            guard !connection.isClosed else { return }
            let read = Result { () throws(JSONError) in
                try EnvelopeReader.read(line.readableBytesUInt8Span, limits)
            }
            connection.hub.post(
                .run(connection) { handler in
                    // What was read of it is counted from here on.
                    defer { withExtendedLifetime(charge) {} }
                    handler.machine.lineCameBack()
                    if handler.machine.isTaking { handler.take(read) }
                })
        }
    }
}
