import HatoModel
import NIOCore

// Lines that take long to read: a line of 16 MiB may hold millions of values, which keep a loop for half a second and
// with it every other connection. They are read by a thread for such work; what is behind them on their connection waits.

extension ConnectionHandler {
    /// A line of so many bytes takes its loop a few milliseconds.
    static let lineReadOnLoopBytesMax = 256 << 10

    func readElsewhere(_ line: ByteBuffer) {
        lineElsewhereBytes = line.readableBytes
        let (connection, limits) = (connection, server.limits)
        server.runElsewhere {
            let read = Result { () throws(JSONError) in
                try EnvelopeReader.read(
                    line.readableBytesUInt8Span, nestingMax: limits.nestingMax, batchEntriesMax: limits.batchEntriesMax)
            }
            connection.hub.post(
                .run(connection) { handler in
                    handler.lineElsewhereBytes = 0
                    if handler.phase == .open || handler.phase == .finishing { handler.take(read) }
                })
        }
    }
}
