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

    @Test func acceptingPausesWhileTooManyDescriptorsAreOpen() throws {
        let reads = CountedReads()
        let listener = EmbeddedChannel(handlers: [reads, AcceptLimit(max: 2)])
        let children = (0..<3).map { _ in EmbeddedChannel(loop: listener.embeddedEventLoop) }
        for child in children.prefix(2) {
            listener.read()
            listener.pipeline.fireChannelRead(child as any Channel)
        }
        #expect(reads.count == 2)
        listener.read()
        #expect(reads.count == 2, "as long as both are open, whatever became of them")
        _ = try children[0].finish()
        listener.embeddedEventLoop.run()
        #expect(reads.count == 3)
        listener.pipeline.fireChannelRead(children[2] as any Channel)
        listener.read()
        #expect(reads.count == 3)
        for child in children.dropFirst() { _ = try child.finish() }
        listener.embeddedEventLoop.run()
        #expect(reads.count == 4)
        _ = try listener.finish(acceptAlreadyClosed: true)
    }

    @Test func descriptorsAreLimitedNotFarBeyondTheConnections() {
        for (connections, descriptors) in [(1, 5), (100, 125), (16_384, 16_512)] {
            var limits = RPCLimits()
            limits.connectionsMax = connections
            #expect(ConnectionAdmission.Limits(limits).acceptedMax == descriptors)
        }
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
