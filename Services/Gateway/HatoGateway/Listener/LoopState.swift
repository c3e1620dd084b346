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
    let untaken: UntakenBytes
    /// Nil: requests are not logged.
    let accessLog: AccessLog?
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
    private let accessLog: AccessLog?
    private let logger: Logger
    /// Parts of requests and messages that are not complete.
    let held: HeldBytes
    /// All event loops; set once, before the first connection.
    private(set) var peers = LoopPeers()
    let sessions = SessionTable()
    private(set) lazy var polls = PollSessions(self)
    /// What the clients have not taken.
    private(set) lazy var output = OutputWatch(self, untaken)
    private let untaken: UntakenBytes
    private var numbers = 0
    /// When a refusal of the gateway's key is logged again.
    private var nextRefusal = NIODeadline.uptimeNanoseconds(0)
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
        (metrics, gate, untaken) = (shared.metrics, shared.gate, shared.untaken)
        (accessLog, logger) = (shared.accessLog, shared.logger)
        router.state = self
    }

    func join(_ peers: LoopPeers) { self.peers = peers }

    /// A number that no event loop has given out before.
    func newNumber() -> Int {
        numbers += 1
        return peers.number(numbers)
    }

    /// Ends the session that a client had before this one, when it has sent the secret of one (`ls`).
    func end(former text: String?) {
        guard let secret = text.flatMap({ SessionSecret($0) }) else { return }
        peers.perform(on: secret.place.loop) { $0.sessions.session(secret)?.wasReplaced() }
    }

    /// Milliseconds since 1970.
    func now() -> Int64 { configuration.now() }

    /// The params of `session.authenticate`.
    func params(of credential: SessionCredential) -> [UInt8] {
        configuration.emulator.map { credential.emulatedParams($0.administratorKey) } ?? credential.params()
    }

    /// Why a request is refused by its headers; nil: it is not.
    func problem(_ head: HTTPRequestHead) -> String? { configuration.emulator?.hosts.problem(RESTHead(head)) }

    /// A native socket was closed by the gateway.
    func closed(_ reason: NativeSocketEnd) {
        var level = Logger.Level.debug
        // Each client meets a wrong key: one line a minute says it.
        if reason == .refused, nextRefusal <= .now() {
            (level, nextRefusal) = (.error, .now() + .minutes(1))
        }
        logger.log(level: level, "a native socket was closed", metadata: ["reason": "\(reason)"])
    }

    /// A request has its whole response, or its client has gone.
    func ended(_ record: RequestRecord) {
        metrics.ended(record)
        accessLog?.add(record)
    }

    /// A session was closed by the gateway.
    func closed(_ reason: some Sendable) {
        metrics.sessionClosed(String("\(reason)".prefix { $0 != "(" }))
        logger.debug("a session was closed", metadata: ["reason": "\(reason)"])
    }

    /// Clients were stopped, or may go on, because of what they have not taken.
    func outputChanged() {
        for socket in sockets.values { socket.outputChanged() }
        for connection in connections.values { connection.outputChanged() }
        polls.outputChanged()
    }

    /// Ends what is under way as gently as it can be.
    ///
    /// - Parameter time: sessions end one after the other within it, so that not all clients come back at once.
    func leave(within time: TimeAmount) {
        let leaving = sockets.values.filter(\.leavesInTurn)
        for socket in sockets.values where !socket.leavesInTurn { socket.leave() }
        let departures = leaving.map { socket in { [weak socket] in socket?.leave() ?? () } } + polls.departures()
        let pause = Departures.pause(count: departures.count, within: time.nanoseconds)
        // Sockets and polling sessions mixed.
        for (index, leave) in departures.shuffled().enumerated() {
            loop.assumeIsolated().scheduleTask(in: .nanoseconds(pause * Int64(index))) { leave() }
        }
        for connection in connections.values { connection.leave() }
    }

    var isIdle: Bool { sockets.isEmpty && connections.isEmpty }
}
