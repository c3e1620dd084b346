import HatoFirebase
import HatoModel
import HatoRPC
import Logging
import NIOCore
import NIOHTTP1

/// What all event loops share.
struct SharedParts: Sendable {
    let gate: ClientGate
    let metrics: GatewayMetrics
    let logger: Logger
}

/// What the connections of one event loop share.
final class LoopState {
    let loop: any EventLoop
    let configuration: GatewayConfiguration
    let upstream: Upstream
    let router: GatewayRouter
    let metrics: GatewayMetrics
    /// Of all event loops.
    let gate: ClientGate
    private let logger: Logger
    /// Parts of requests and messages that are not complete.
    let held: HeldBytes
    var connections: [ObjectIdentifier: HTTPConnection] = [:]
    var sockets: [ObjectIdentifier: any FramedSocket] = [:]

    init(
        _ configuration: GatewayConfiguration, _ links: ServiceLinks, on loop: any EventLoop, _ shared: SharedParts
    ) {
        (self.configuration, self.loop) = (configuration, loop)
        upstream = Upstream(links, on: loop, configuration)
        held = HeldBytes(
            max: configuration.limits.heldBytesMax, perClientMax: configuration.limits.heldBytesPerAddressMax)
        router = GatewayRouter(configuration, upstream, held, on: loop)
        (metrics, gate, logger) = (shared.metrics, shared.gate, shared.logger)
    }

    /// Milliseconds since 1970.
    func now() -> Int64 { configuration.now() }

    /// A new secret of 144 random bits, of characters that may stand in an address.
    func secret() -> String {
        var generator = SystemRandomNumberGenerator()
        return Base64.url.encode((0..<18).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// The params of `session.authenticate`.
    func params(of credential: SessionCredential) -> [UInt8] {
        configuration.emulator.map { credential.emulatedParams($0.administratorKey) } ?? credential.params()
    }

    /// Why a request is refused by its headers; nil: it is not.
    func problem(_ head: HTTPRequestHead) -> String? { configuration.emulator?.hosts.problem(RESTHead(head)) }

    /// A native socket was closed by the gateway.
    func closed(_ reason: NativeSocketEnd) {
        let level = reason == .refused ? Logger.Level.error : .debug
        logger.log(level: level, "a native socket was closed", metadata: ["reason": "\(reason)"])
    }

    /// A session was closed by the gateway.
    func closed(_ reason: SessionEnd) { logger.debug("a session was closed", metadata: ["reason": "\(reason)"]) }

    /// Ends what is under way as gently as it can be.
    func leave() {
        for socket in sockets.values { socket.leave() }
        for connection in connections.values { connection.leave() }
    }

    var isIdle: Bool { sockets.isEmpty && connections.isEmpty }
}
