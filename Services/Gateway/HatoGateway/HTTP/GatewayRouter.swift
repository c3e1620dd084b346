import HatoFirebase
import NIOCore
import NIOHTTP1

/// Which exchange handles a request.
final class GatewayRouter {
    private let configuration: GatewayConfiguration
    private let upstream: Upstream
    private let held: HeldBytes
    private let loop: any EventLoop

    init(
        _ configuration: GatewayConfiguration, _ upstream: Upstream, _ held: HeldBytes, on loop: any EventLoop
    ) {
        (self.configuration, self.upstream, self.held, self.loop) = (configuration, upstream, held, loop)
    }

    /// The exchange of a request; nil when it has its response already.
    func exchange(
        for head: HTTPRequestHead, from address: String, _ connection: HTTPConnection
    ) -> (any HTTPExchange)? {
        let rest = RESTHead(
            method: head.method.rawValue, target: head.uri,
            headers: head.headers.map { (name: $0.name, value: $0.value) })
        if head.method == .OPTIONS {
            connection.respond(HTTPResponse(RESTAnswer.preflight(rest)))
            return nil
        }
        switch head.path {
        case "/healthz":
            connection.respond(.text(.ok, "ok\n"))
            return nil
        case "/.ws":
            connection.respond(.text(.badRequest, "This address takes WebSockets only (RFC 6455).\n"))
            return nil
        default: break
        }
        do {
            let request = try RESTRequest(rest, configuration.namespaces)
            let caller = RESTCaller(
                configuration: configuration, upstream: upstream, held: held.of(address), address: address)
            return request.isStream
                ? EventStreamExchange(request, caller, connection, on: loop)
                : RESTExchange(request, caller, connection, on: loop)
        } catch {
            connection.respond(HTTPResponse(error.response(omitsBody: rest.omitsBody)))
            return nil
        }
    }
}
