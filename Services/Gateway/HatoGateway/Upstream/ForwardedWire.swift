import HatoModel
import HatoRPC
import NIOCore
import Synchronization

/// What hears of a connection that speaks for a client: on its event loop, and never inside a call of the owner.
protocol ForwardedWireOwner: AnyObject {
    /// The service takes calls for clients.
    func wireOpened(_ wire: ForwardedWire)
    /// The response to a call.
    func wire(_ wire: ForwardedWire, received response: RPCWireResponse)
    /// A notification to a subscription.
    func wire(_ wire: ForwardedWire, received notification: RPCWireNotification)
    /// All that has come is delivered.
    func wireDelivered(_ wire: ForwardedWire)
    /// The socket of the service takes calls again (`isWritable`).
    func wireBecameWritable(_ wire: ForwardedWire)
    /// The end, once, and the last call; `unanswered` are the calls without a response.
    func wireEnded(_ wire: ForwardedWire, _ error: RPCError, unanswered: [UInt64])
}

extension ForwardedWireOwner {
    func wire(_ wire: ForwardedWire, received notification: RPCWireNotification) {}
    func wireDelivered(_ wire: ForwardedWire) {}
    func wireBecameWritable(_ wire: ForwardedWire) {}
}

/// How the gateway reaches a service: the connector, and the key by which it speaks for its clients.
struct ServiceLink: Sendable {
    var connector: RPCWireConnector
    var forwardKey: String
    /// Of its outages.
    var reports: ServiceReports
    /// Whether the service carries out the calls of one connection together. Another one begins a call when the one
    /// before has its response.
    var carriesOutTogether = false
    /// The connections that are open, of all event loops.
    let openWires = OpenWires()

    /// Begins to connect, on this event loop.
    ///
    /// - Parameter client: the IP address for which the connection speaks unless its calls say so; nil: each call does.
    func connect(on loop: any EventLoop, for client: String?, _ owner: any ForwardedWireOwner) -> ForwardedWire {
        ForwardedWire(self, on: loop, for: client, owner)
    }
}

/// How many connections to a service are open. Any thread calls.
final class OpenWires: Sendable {
    private let open = Atomic(0)

    var count: Int { open.load(ordering: .relaxed) }
    func change(by change: Int) { open.wrappingAdd(change, ordering: .relaxed) }
}

/// A connection to a service that was declared to speak for others (`session.forward`) before its first call.
///
/// Its owner keeps it, and closes it.
final class ForwardedWire {
    private var wire: RPCWire?
    private var owner: (any ForwardedWireOwner)?
    private var declaration: UInt64?
    private let openWires: OpenWires
    private let reports: ServiceReports
    private(set) var isOpen = false
    /// The service refuses to let the gateway speak for others.
    private var refusal: RPCError?

    fileprivate init(
        _ link: ServiceLink, on loop: any EventLoop, for client: String?, _ owner: any ForwardedWireOwner
    ) {
        (self.owner, openWires, reports) = (owner, link.openWires, link.reports)
        openWires.change(by: 1)
        let wire = link.connector.connect(on: loop, self)
        self.wire = wire
        declaration = wire.send(Session.Forward.method, params: link.declaration(for: client).span)
    }

    /// Sends a call whose params are the text of an object. Returns its id; nil when the connection has ended.
    func send(_ method: String, _ params: [UInt8]) -> UInt64? { wire?.send(method, params: params.span) }

    var queuedBytes: Int { wire?.queuedBytes ?? 0 }
    /// Whether the service takes calls, and what was sent in this turn of the event loop is still to go out.
    var isGathering: Bool { isOpen && wire?.isGathering == true }
    var isWritable: Bool { wire?.isWritable ?? true }
    func pause() { wire?.pause() }
    func resume() { wire?.resume() }
    /// The owner hears nothing more but of the end.
    func close() { wire?.close() }
}

extension ForwardedWire: RPCWireDelegate {
    func wireConnected(_ wire: RPCWire) {}

    func wire(_ wire: RPCWire, received response: RPCWireResponse) {
        guard response.id == declaration else {
            owner?.wire(self, received: response)
            return
        }
        declaration = nil
        switch response.outcome {
        case .result:
            isOpen = true
            reports.opened()
            owner?.wireOpened(self)
        case .error(let error, _):
            refusal = error
            wire.close()
        }
    }

    func wire(_ wire: RPCWire, received notification: RPCWireNotification) {
        owner?.wire(self, received: notification)
    }

    func wireDelivered(_ wire: RPCWire) { owner?.wireDelivered(self) }

    func wireBecameWritable(_ wire: RPCWire) { owner?.wireBecameWritable(self) }

    func wireEnded(_ wire: RPCWire, _ end: RPCWireEnd, unanswered: [UInt64]) {
        openWires.change(by: -1)
        if !isOpen { reports.failed(end, refusal: refusal) }
        let owner = owner
        self.owner = nil
        self.wire = nil
        isOpen = false
        owner?.wireEnded(self, refusal == nil ? end.error : Self.refused, unanswered: unanswered)
    }

    /// It is not the client's credential that was refused.
    private static let refused = RPCError.unavailable(
        reason: "forward_refused", "The service does not let the gateway speak for clients")
}
