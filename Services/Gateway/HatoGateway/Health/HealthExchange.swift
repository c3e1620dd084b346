import HatoModel
import NIOCore
import NIOHTTP1

/// `GET /healthz`: the health of the gateway, as `service.health` has that of a service.
///
/// A gateway whose services are away is `degraded`, with status 200: its responses say so in a form that clients
/// understand, and a load balancer that took it away would only replace them with its own. One that stops has 503.
final class HealthExchange: HTTPExchange {
    private let health: ServiceHealth
    private let connection: HTTPConnection
    private let omitsBody: Bool
    private var hasEnded = false

    init(_ health: ServiceHealth, _ head: HTTPRequestHead, _ connection: HTTPConnection) {
        (self.health, self.connection, omitsBody) = (health, connection, head.method == .HEAD)
    }

    func received(_ body: ByteBuffer) {}
    func clientLeft() { hasEnded = true }

    func requestEnded() {
        health.ask { [self] states in
            guard !hasEnded else { return }
            hasEnded = true
            connection.respond(response(states))
        }
    }

    private func response(_ states: ServiceHealth.States) -> HTTPResponse {
        let isReady = states.allSatisfy { $0.status == Service.Health.Status.ready.rawValue }
        let status: Service.Health.Status = connection.isLeaving ? .stopping : isReady ? .ready : .degraded
        var services = JSONObject()
        for state in states { services.append(state.service, .string(state.status)) }
        let object: JSONObject = [
            "service": "gateway", "version": .string(Service.version), "status": .string(status.rawValue),
            "services": .object(services),
        ]
        var response = HTTPResponse(
            status: connection.isLeaving ? .serviceUnavailable : .ok,
            headers: [
                "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store",
                "Access-Control-Allow-Origin": "*",
            ], body: ByteBuffer(bytes: JSONValue.object(object).encoded))
        response.omitsBody = omitsBody
        return response
    }
}
