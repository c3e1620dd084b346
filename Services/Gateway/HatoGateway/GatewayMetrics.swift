import Metrics
import Synchronization

/// The gateway's own figures.
final class GatewayMetrics: Sendable {
    private let requests = Counter(label: "hato_gateway_requests_total")
    private let failures = Counter(label: "hato_gateway_responses_failed_total")
    private let sockets = Gauge(label: "hato_gateway_sockets")
    private let socketCount = Atomic(0)
    private let polls = Gauge(label: "hato_gateway_polling_sessions")
    private let pollCount = Atomic(0)

    func requestBegan() { requests.increment() }

    /// A response with this status begins.
    func responded(_ status: UInt) { if status >= 500 { failures.increment() } }

    func socketsChanged(by change: Int) {
        sockets.record(socketCount.wrappingAdd(change, ordering: .relaxed).newValue)
    }

    func pollingSessionsChanged(by change: Int) {
        polls.record(pollCount.wrappingAdd(change, ordering: .relaxed).newValue)
    }
}
