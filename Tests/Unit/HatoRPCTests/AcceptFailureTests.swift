import Foundation
import HatoTesting
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HatoRPC

/// An accept that fails leaves the listening socket readable: it is not tried again at once.
struct AcceptFailureTests {
    @Test(arguments: [EMFILE, ENFILE])
    func acceptingPausesForWantOfFilesAndSaysSo(code: CInt) throws {
        let (reads, lines) = (CountedReads(), Shared<[String]>([]))
        let notices = ThrottledNotices(Logger(label: "test") { _ in KeptLog(lines: lines) })
        let channel = EmbeddedChannel(handlers: [reads, AcceptFailures.backoff(), AcceptFailures(notices)])
        let (before, earliest) = (reads.count, NIODeadline.now() + AcceptFailures.pause)
        channel.pipeline.fireErrorCaught(IOError(errnoCode: code, reason: "accept"))
        for _ in 0..<100 { channel.read() }
        channel.embeddedEventLoop.advanceTime(to: earliest - .nanoseconds(1))
        #expect(reads.count == before)
        channel.embeddedEventLoop.advanceTime(to: .now() + AcceptFailures.pause)
        #expect(reads.count == before + 1)
        channel.read()
        #expect(reads.count == before + 2)
        #expect(lines.current.count == 1)
        #expect(lines.current.first?.contains("accepting pauses") == true)
    }
}

private final class CountedReads: ChannelOutboundHandler {
    typealias OutboundIn = Never

    private(set) var count = 0

    func read(context: ChannelHandlerContext) {
        count += 1
        context.read()
    }
}

private struct KeptLog: LogHandler {
    let lines: Shared<[String]>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.change { $0.append("\(event.message)") } }
}
