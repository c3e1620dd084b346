import HatoModel
import NIOCore

@testable import HatoRPC

/// What a wire has delivered.
enum WireEvent: Hashable, Sendable {
    case connected
    case result(UInt64, String)
    case error(UInt64, RPCError, String)
    /// The members as texts `"name":value`.
    case notification(String, String, [String])
    case delivered
    case writable
    case ended(RPCWireEnd, [UInt64])

    /// Whether it came in a line.
    var isMessage: Bool {
        switch self {
        case .result, .error, .notification: true
        default: false
        }
    }

    var end: RPCWireEnd? { if case .ended(let end, _) = self { end } else { nil } }

    /// The id of the request whose response it is.
    var responseID: UInt64? {
        switch self {
        case .result(let id, _), .error(let id, _, _): id
        default: nil
        }
    }
}

/// Keeps what wires deliver, in order, and lets a test act at each event. On one event loop.
final class WireLog: RPCWireDelegate {
    /// Can be read anywhere.
    let kept = Shared<[WireEvent]>([])
    /// Called after each event.
    var react: (RPCWire, WireEvent) -> Void = { _, _ in }
    /// Whether a method of the wire is being called.
    private(set) var isInside = false
    /// Events that came inside a call.
    private(set) var inside: [WireEvent] = []

    var events: [WireEvent] { kept.current }
    var messages: [WireEvent] { events.filter(\.isMessage) }
    var end: RPCWireEnd? { events.last?.end }

    /// Calls a method of a wire.
    func call<Result>(_ body: () -> Result) -> Result {
        let wasInside = isInside
        isInside = true
        defer { isInside = wasInside }
        return body()
    }

    private func add(_ event: WireEvent, _ wire: RPCWire) {
        if isInside { inside.append(event) }
        kept.change { $0.append(event) }
        react(wire, event)
    }

    func wireConnected(_ wire: RPCWire) { add(.connected, wire) }

    func wire(_ wire: RPCWire, received response: RPCWireResponse) {
        switch response.outcome {
        case .result(let text): add(.result(response.id, String(buffer: text)), wire)
        case .error(let error, let text): add(.error(response.id, error, String(buffer: text)), wire)
        }
    }

    func wire(_ wire: RPCWire, received notification: RPCWireNotification) {
        let members = notification.members.map { "\(EncodedJSON(.string($0.name)).text):\(String(buffer: $0.text))" }
        add(.notification(notification.method, notification.subscription, members), wire)
    }

    func wireDelivered(_ wire: RPCWire) { add(.delivered, wire) }

    func wireBecameWritable(_ wire: RPCWire) { add(.writable, wire) }

    func wireEnded(_ wire: RPCWire, _ end: RPCWireEnd, unanswered: [UInt64]) { add(.ended(end, unanswered), wire) }
}

extension RPCWire {
    func send(_ method: String, _ params: String = "{}") -> UInt64? { send(method, params: Array(params.utf8).span) }
}
