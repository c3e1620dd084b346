import HatoFirebase
import NIOCore
import NIOHTTP1

/// Finds the requests of Firebase Auth, and has what their exchanges share on one event loop.
final class AccountsRouter {
    let loop: any EventLoop
    let limits: GatewayLimits
    private let wires: SharedWires
    private let slowWires: SharedWires
    let held: HeldBytes
    /// Nil where there is no emulator.
    let emulator: EmulatorConfiguration?
    private let accounts: AccountsConfiguration
    private let publicURL: PublicURL?
    /// Of connections to the gateway itself.
    private let scheme: URLScheme

    /// Nil where no accounts are served.
    init?(
        _ configuration: GatewayConfiguration, _ upstream: Upstream, _ held: HeldBytes, on loop: any EventLoop
    ) {
        guard let accounts = configuration.accounts, let wires = upstream.sharedAuth else { return nil }
        slowWires = upstream.slowAuth ?? wires
        (limits, self.accounts, self.wires) = (configuration.limits, accounts, wires)
        (self.held, self.loop, emulator) = (held, loop, configuration.emulator)
        (publicURL, scheme) = (configuration.publicURL, configuration.tls == nil ? .http : .https)
    }

    /// The connections for a call: behind some of them others would wait.
    func wires(for call: NativeCall) -> SharedWires { call.holdsOthers ? slowWires : wires }

    /// The response to OPTIONS; nil where the path is none of the account dialect.
    func preflight(_ head: HTTPRequestHead) -> HTTPResponse? {
        guard serves(head) else { return nil }
        return HTTPResponse(AccountResponse.preflight(RESTHead(head)))
    }

    /// Whether the request is one of the account dialect.
    func serves(_ head: HTTPRequestHead) -> Bool { AccountPaths(isEmulator: emulator != nil).contain(head) }

    /// The exchange of a request; nil where the path is none of the account dialect.
    func exchange(
        for head: HTTPRequestHead, from address: String, _ connection: HTTPConnection
    ) -> AccountsExchange? {
        guard AuthRoute.isPossible(head.path) else { return nil }
        let request = AccountRequest(head)
        guard AuthRoute.find(request.method, request.path, isEmulator: emulator != nil) != nil else { return nil }
        let context = context(head, connection.peer)
        guard let bytesMax = AccountExchange.bodyBytesMax(of: request, context) else { return nil }
        let client = AccountsExchange.Client(
            address: address, origin: head.headers.first(name: "origin"), omitsBody: head.method == .HEAD)
        return AccountsExchange(
            self, AccountsExchange.Request(request: request, context: context, bytesMax: bytesMax), client, connection)
    }

    private func context(_ head: HTTPRequestHead, _ peer: Peer) -> AccountContext {
        var context = AccountContext(project: accounts.project, origin: origin(head, peer))
        context.apiKeys = accounts.apiKeys
        context.limits = limits.accounts
        context.sessionId = Self.sessionId()
        if let emulator {
            context.isEmulator = true
            context.codes = emulator.codes.all
        }
        return context
    }

    /// Scheme, host and port by which the client has reached the gateway.
    private func origin(_ head: HTTPRequestHead, _ peer: Peer) -> String {
        if let publicURL { return publicURL.origin }
        let forwarded = peer.isProxy ? URLScheme(forwarded: head.headers["x-forwarded-proto"]) : nil
        let host = head.headers.first(name: "host") ?? ""
        return "\((forwarded ?? scheme).rawValue)://\(PlainHost.isPlain(host) ? host : "localhost")"
    }

    private static let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)

    private static func sessionId() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<27).compactMap { _ in letters.randomElement(using: &generator) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The requests of the account dialect, by their heads.
struct AccountPaths: Sendable {
    var isEmulator: Bool

    /// OPTIONS is of the dialect where the request is that it asks for.
    func contain(_ head: HTTPRequestHead) -> Bool {
        let request = AccountRequest(head)
        let asked = head.headers.first(name: "access-control-request-method") ?? "POST"
        let method = head.method == .OPTIONS ? asked : request.method
        return AuthRoute.find(method, request.path, isEmulator: isEmulator) != nil
    }
}

extension AccountRequest {
    /// The request with this head, without its body.
    init(_ head: HTTPRequestHead) {
        var method = head.method.rawValue
        // A HEAD has the response of a GET, without its body.
        if method == "HEAD" { method = "GET" }
        if method == "POST", let other = head.headers.first(name: "x-http-method-override") {
            method = other.uppercased()
        }
        self.init(method, head.uri)
        authorization = head.headers.first(name: "authorization")
        apiKey = head.headers.first(name: "x-goog-api-key")
        contentType = head.headers.first(name: "content-type")
        locale = head.headers.first(name: "x-firebase-locale")
    }
}
