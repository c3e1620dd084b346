import Logging
import NIOCore

/// Stops accepting for a moment when an accept fails, above all for want of files (EMFILE, ENFILE), and says so in the
/// log.
///
/// What waits in the kernel's queue keeps the listening socket readable: without a pause the loop would try again at
/// once, for ever. The pause is made by `backoff()`, which stands before this handler.
final class AcceptFailures: ChannelInboundHandler {
    typealias InboundIn = any Channel

    static let pause = TimeAmount.milliseconds(200)

    private let notices: ThrottledNotices

    init(_ notices: ThrottledNotices) { self.notices = notices }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        notices.notice(
            .failedAccept, "a connection could not be accepted; accepting pauses",
            ["error": "\(ConnectionProblem.words(error))"], level: .warning)
    }

    /// The pause after an accept that failed.
    static func backoff() -> AcceptBackoffHandler {
        AcceptBackoffHandler(shouldForwardIOErrorCaught: true) { _ in pause }
    }
}
