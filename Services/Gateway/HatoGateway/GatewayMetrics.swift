import HatoFirebase
import Metrics
import Synchronization

/// The gateway's own figures; names are those of Prometheus, each explained in the README. Any thread calls.
final class GatewayMetrics: Sendable {
    /// A number of things that come and go.
    private final class Level: Sendable {
        private let gauge: Gauge
        private let count = Atomic(0)

        init(_ label: String, _ dimensions: [(String, String)] = []) {
            gauge = Gauge(label: label, dimensions: dimensions)
        }

        func change(by change: Int) { gauge.record(count.wrappingAdd(change, ordering: .relaxed).newValue) }
    }

    /// By the first digit of the status; `none`: the client has gone before the response began.
    private static let statuses = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"]

    /// The figures of one kind.
    private struct OfKind: Sendable {
        let requests: [Counter]
        let underWay: Level
        let seconds: Timer?

        init(_ kind: RequestKind) {
            let dimension = ("kind", kind.rawValue)
            requests = GatewayMetrics.statuses.map { status in
                Counter(label: "hato_gateway_requests_total", dimensions: [dimension, ("status", status)])
            }
            underWay = Level("hato_gateway_requests_under_way", [dimension])
            seconds = kind.isPrompt ? Timer(label: "hato_gateway_request_seconds", dimensions: [dimension]) : nil
        }
    }

    /// The figures of the native sockets of one service.
    private struct OfService: Sendable {
        let sockets: Level
        let received: Counter
        let sent: Counter

        init(_ service: String) {
            sockets = Level("hato_gateway_native_sockets", [("service", service)])
            (received, sent) = (Self.messages(service, "received"), Self.messages(service, "sent"))
        }

        private static func messages(_ service: String, _ direction: String) -> Counter {
            Counter(
                label: "hato_gateway_native_messages_total",
                dimensions: [("service", service), ("direction", direction)])
        }
    }

    private let kinds: [RequestKind: OfKind]
    private let sockets = Level("hato_gateway_sockets")
    /// By the name of the service.
    private let natives: [String: OfService]
    private let polls = Level("hato_gateway_polling_sessions")
    private let connections = Level("hato_gateway_connections")
    private let heldBytes = Gauge(label: "hato_gateway_held_bytes")
    private let untakenBytes = Gauge(label: "hato_gateway_untaken_bytes")
    private let unreadConnections = Counter(label: "hato_gateway_unread_connections_closed_total")
    private let wires = Gauge(label: "hato_gateway_wires")

    init() {
        kinds = Dictionary(uniqueKeysWithValues: RequestKind.allCases.map { ($0, OfKind($0)) })
        natives = Dictionary(
            uniqueKeysWithValues: ["auth", "messages", "notifier"].map { ($0, OfService($0)) })
        // A metric is shown from the start.
        for refusal in Refusal.allCases { _ = Self.refusals(refusal) }
        _ = Self.sessionsClosed("wireLost")
    }

    /// Requests of this kind have begun, or, if negative, ended.
    func underWay(_ kind: RequestKind, by change: Int) { kinds[kind]?.underWay.change(by: change) }

    /// A request has its whole response, or its client has gone.
    func ended(_ record: RequestRecord) {
        guard let kind = kinds[record.kind] else { return }
        let index = record.status.map { Int(min($0 / 100, 5)) } ?? 0
        kind.requests[index].increment()
        kind.seconds?.recordNanoseconds(record.nanoseconds)
    }

    /// Why a request is refused before anything handles it.
    enum Refusal: String, Sendable, CaseIterable {
        /// Connections of its address.
        case connections
        /// Requests of its address.
        case requests
        /// The page that sent it.
        case origin
    }

    /// A request was refused.
    func refused(_ refusal: Refusal) { Self.refusals(refusal).increment() }

    private static func refusals(_ refusal: Refusal) -> Counter {
        Counter(label: "hato_gateway_refused_total", dimensions: [("reason", refusal.rawValue)])
    }

    func socketsChanged(by change: Int) { sockets.change(by: change) }
    func nativeSocketsChanged(_ service: String, by change: Int) { natives[service]?.sockets.change(by: change) }
    func nativeMessage(_ service: String, isOfClient: Bool) {
        let figures = natives[service]
        (isOfClient ? figures?.received : figures?.sent)?.increment()
    }

    func pollingSessionsChanged(by change: Int) { polls.change(by: change) }
    func connectionsChanged(by change: Int) { connections.change(by: change) }

    /// A connection was closed because its client has not taken what it has for too long.
    func unreadConnectionClosed() { unreadConnections.increment() }

    /// A session was closed by the gateway; the name of the reason (`SessionEnd`).
    func sessionClosed(_ reason: String) { Self.sessionsClosed(reason).increment() }

    private static func sessionsClosed(_ reason: String) -> Counter {
        Counter(label: "hato_gateway_sessions_closed_total", dimensions: [("reason", reason)])
    }

    /// What event loops have now, of all of them.
    func show(heldBytes: Int, untakenBytes: Int, wires: Int) {
        self.heldBytes.record(heldBytes)
        self.untakenBytes.record(untakenBytes)
        self.wires.record(wires)
    }
}
