import NIOCore
import Synchronization

/// Pauses accepting while too many accepted connections have their descriptors open.
///
/// A connection that is refused, or closed for another, keeps its descriptor until its loop gets to it, and one that
/// was just accepted is not known to `ConnectionAdmission` before: a flood that comes faster than busy loops take it
/// would use up the files of the process. What is not accepted waits in the kernel's queue.
final class AcceptLimit: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias InboundOut = any Channel
    typealias OutboundIn = Never

    /// Descriptors that are open; changed from any loop.
    private final class Open: Sendable {
        let count = Atomic(0)
        let isReadHeld = Atomic(false)
    }

    private let max: Int
    private let open = Open()

    /// - Parameter max: descriptors of accepted connections.
    init(max: Int) { self.max = max }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        open.count.wrappingAdd(1, ordering: .sequentiallyConsistent)
        let (open, listener) = (open, context.channel)
        unwrapInboundIn(data).closeFuture.whenComplete { _ in
            open.count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
            if open.isReadHeld.exchange(false, ordering: .sequentiallyConsistent) { listener.read() }
        }
        context.fireChannelRead(data)
    }

    func read(context: ChannelHandlerContext) {
        if isBelowMax { return context.read() }
        open.isReadHeld.store(true, ordering: .sequentiallyConsistent)
        // One may just have closed.
        guard isBelowMax, open.isReadHeld.exchange(false, ordering: .sequentiallyConsistent) else { return }
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        open.isReadHeld.store(false, ordering: .sequentiallyConsistent)
        context.fireChannelInactive()
    }

    private var isBelowMax: Bool { open.count.load(ordering: .sequentiallyConsistent) < max }
}
