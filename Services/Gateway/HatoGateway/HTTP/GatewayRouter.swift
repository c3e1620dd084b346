import HatoFirebase
import NIOCore
import NIOHTTP1

/// Which exchange handles a request.
final class GatewayRouter {
    private let configuration: GatewayConfiguration
    private let upstream: Upstream
    private let held: HeldBytes
    private let loop: any EventLoop
    private let accounts: AccountsRouter?
    /// What the connections of the event loop share.
    weak var state: LoopState?
    private let health: ServiceHealth

    init(
        _ configuration: GatewayConfiguration, _ upstream: Upstream, _ held: HeldBytes, on loop: any EventLoop
    ) {
        (self.configuration, self.upstream, self.held, self.loop) = (configuration, upstream, held, loop)
        accounts = AccountsRouter(configuration, upstream, held, on: loop)
        health = ServiceHealth(upstream, on: loop)
    }

    /// The exchange of a request; nil when it has its response already.
    func exchange(
        for head: HTTPRequestHead, from address: String, _ connection: HTTPConnection
    ) -> (any HTTPExchange)? {
        let rest = RESTHead(head)
        if let problem = configuration.emulator?.hosts.problem(rest), head.path != "/healthz" {
            connection.respond(.text(.forbidden, problem))
            return nil
        }
        if head.method == .OPTIONS {
            connection.respond(accounts?.preflight(head) ?? HTTPResponse(RESTAnswer.preflight(rest)))
            return nil
        }
        if head.path == "/healthz" { return HealthExchange(health, head, connection) }
        if head.path == "/.lp" {
            return state.flatMap { PollExchange.exchange(for: head, from: address, connection, $0) }
        }
        if let target = SocketTarget(path: head.path) {
            connection.respond(target.refusal(head, upstream.links))
            return nil
        }
        if connection.isStopped {
            connection.respond(refusalOfStopped(head, rest))
            return nil
        }
        let caller = RESTCaller(
            configuration: configuration, upstream: upstream, held: held.of(connection.peer.client(at: address)),
            address: address)
        if let request = PushRequest(rest) { return PushExchange.exchange(request, caller, connection, on: loop) }
        if let exchange = accounts?.exchange(for: head, from: address, connection) { return exchange }
        do {
            let request = try RESTRequest(rest, configuration.namespaces, configuration.limits.rest)
            return request.isStream
                ? EventStreamExchange(request, caller, connection, on: loop)
                : RESTExchange(request, caller, connection, on: loop)
        } catch {
            connection.respond(HTTPResponse(error.response(omitsBody: rest.omitsBody)))
            return nil
        }
    }

    /// To a request of a client that has not taken what it has (`UntakenShares`): what is said when a service is away.
    private func refusalOfStopped(_ head: HTTPRequestHead, _ rest: RESTHead) -> HTTPResponse {
        if let request = PushRequest(rest) { return HTTPResponse(request.response(to: PushFault.busy)) }
        if let accounts, accounts.serves(head) { return .clientIsStopped }
        return HTTPResponse(RESTErrors.unavailable.response(omitsBody: rest.omitsBody))
    }
}

extension RESTHead {
    init(_ head: HTTPRequestHead) {
        self.init(
            method: head.method.rawValue, target: head.uri,
            headers: head.headers.map { (name: $0.name, value: $0.value) })
    }
}
