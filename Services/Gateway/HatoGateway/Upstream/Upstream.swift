import HatoRPC
import NIOCore

/// The services, as one event loop reaches them.
final class Upstream {
    /// A connection of its own for each session and event stream.
    let messages: ServiceLink
    /// Those that single calls share.
    let sharedMessages: SharedWires

    init(_ messages: ServiceLink, on loop: any EventLoop, _ limits: GatewayLimits) {
        self.messages = messages
        sharedMessages = SharedWires(messages, on: loop, limits)
    }

    func close() { sharedMessages.close() }
}
