import HatoFirebase
import HatoModel
import HatoRPC
import Logging
import NIOCore
import NIOHTTP1
import Synchronization

/// A peer that has connected.
struct Peer: Sendable, Hashable {
    /// The IP address of its socket.
    let address: String
    private let client: ClientAddress
    /// Whether it is a trusted proxy: it speaks for clients of other addresses.
    var isProxy = false
    /// Whether it is on this machine, and no trusted proxy: no limit of an address counts it. It may be a proxy that
    /// names no client, and then it is all of them.
    var isLocal = false
    /// Whether its address has too many connections: its requests are refused.
    var isRefused = false

    init(address: String, isProxy: Bool = false, isLocal: Bool = false, isRefused: Bool = false) {
        (self.address, client) = (address, ClientAddress(address))
        (self.isProxy, self.isLocal, self.isRefused) = (isProxy, isLocal, isRefused)
    }

    /// The client at an IP address for which the peer speaks: its own, unless it is a proxy.
    func client(at address: String) -> ClientAddress { isProxy ? ClientAddress(address) : client }
}

/// Which clients the gateway serves: their addresses, the pages that they may come from, and what those of one address
/// may take. Any thread calls.
///
/// A connection counts for the address of its socket. Behind a trusted proxy, each request, socket and event stream
/// counts for the address of its client instead, as long as it lasts.
final class ClientGate: Sendable {
    private let proxies: TrustedProxies
    private let origins: AllowedOrigins
    private let publicURL: PublicURL?
    private let load: Mutex<AddressLoad>
    /// Nil: accounts are not served.
    private let accounts: AccountPaths?

    private let notices: GatewayNotices

    init(_ configuration: GatewayConfiguration, _ logger: Logger) {
        notices = GatewayNotices(logger)
        accounts = configuration.accounts.map { _ in AccountPaths(isEmulator: configuration.emulator != nil) }
        (proxies, origins, publicURL) = (configuration.trustedProxies, configuration.origins, configuration.publicURL)
        let limits = configuration.limits
        load = Mutex(
            AddressLoad(
                AddressLoad.Limits(
                    connectionsMax: limits.connectionsPerAddressMax,
                    connectionsOfSiteMax: SiteShare.max(limits.connectionsPerAddressMax, of: limits.connectionsMax),
                    requestsPerSecondMax: limits.requestsPerAddressSecondMax,
                    addressesMax: limits.countedAddressesMax)))
    }

    /// A request that nothing handles.
    struct Refusal {
        var reason: GatewayMetrics.Refusal
        var response: HTTPResponse
    }

    // MARK: Connections

    /// A peer connects; nil: it is closed at once. Otherwise its end is reported with `left`.
    func connected(_ address: String) -> Peer? {
        if proxies.contains(address) { return Peer(address: address, isProxy: true) }
        if IPNumber(address)?.isLoopback == true { return Peer(address: address, isLocal: true) }
        let client = ClientAddress(address)
        let admission = load.withLock { $0.began(client.network, site: client.ownSite) }
        if admission == .admitted { return Peer(address: address) }
        notices.notice(.connections, from: address)
        return admission == .refused ? Peer(address: address, isRefused: true) : nil
    }

    /// A peer has gone.
    func left(_ peer: Peer) { if !peer.isProxy, !peer.isLocal { ended(peer.address) } }

    // MARK: Requests

    /// The IP address of the client that sent a request.
    func client(of head: HTTPRequestHead, _ peer: Peer) -> String {
        peer.isProxy ? proxies.client(behind: peer.address, head.headers["x-forwarded-for"]) : peer.address
    }

    /// A request begins. Without a refusal, its end is reported with `requestEnded`.
    ///
    /// - Returns: why it is refused, with the response.
    func requestBegan(_ head: HTTPRequestHead, from client: String, _ peer: Peer) -> Refusal? {
        guard allows(head) else {
            var response = HTTPResponse.text(.forbidden, "The gateway serves no pages of this origin.\n")
            response.headers.remove(name: Self.allowedOrigin)
            response.headers.add(name: "Vary", value: "Origin")
            return Refusal(reason: .origin, response: response)
        }
        guard !peer.isRefused else { return tooMany(.connections, afterSeconds: 10, head) }
        if !peer.isProxy, head.headers.contains(name: "x-forwarded-for") {
            notices.notice(.unnamedProxy, from: peer.address)
        }
        let known = peer.client(at: client)
        let (key, site) = (known.network, known.ownSite)
        let refusal: (reason: GatewayMetrics.Refusal, seconds: Int)? = load.withLock { load in
            if !peer.isLocal, let seconds = load.requestCame(from: key, site: site, at: Self.now) {
                return (.requests, seconds)
            }
            guard peer.isProxy else { return nil }
            switch load.began(key, site: site) {
            case .admitted: return nil
            case .refused: load.ended(key, site: site)
            case .dropped: break
            }
            return (.connections, 10)
        }
        guard let refusal else { return nil }
        notices.notice(refusal.reason == .requests ? .requests : .connections, from: client)
        return tooMany(refusal.reason, afterSeconds: refusal.seconds, head)
    }

    /// A request has its response, or its client has gone.
    func requestEnded(from client: String, _ peer: Peer) { if peer.isProxy { ended(client) } }

    private func ended(_ address: String) {
        let client = ClientAddress(address)
        load.withLock { $0.ended(client.network, site: client.ownSite) }
    }

    /// In microseconds.
    private static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds / 1_000) }

    /// No JSON: SDKs that look up their user take what is no JSON for a failure of the network, and keep the user.
    /// Those for servers repeat 503, and not 429.
    private func tooMany(
        _ what: GatewayMetrics.Refusal, afterSeconds seconds: Int, _ head: HTTPRequestHead
    ) -> Refusal {
        let text = "There are too many \(what.rawValue) from this address.\n"
        if let accounts, accounts.contain(head) {
            var response = AccountResponse.outage(retryAfterSeconds: seconds)
            response.body = Array(text.utf8)
            let origin = head.headers.first(name: "origin")
            return Refusal(
                reason: what, response: HTTPResponse(response, forOrigin: origin, omitsBody: false))
        }
        var response = HTTPResponse.text(.tooManyRequests, text)
        response.headers.add(name: "Retry-After", value: String(seconds))
        return Refusal(reason: what, response: response)
    }

    // MARK: Origins

    private static let allowedOrigin = "Access-Control-Allow-Origin"

    /// Whether the page that sent a request may call.
    private func allows(_ head: HTTPRequestHead) -> Bool {
        let origin = head.headers.first(name: "origin")
        // A proxy may put another host into the request of the gateway's own page.
        return origins.allows(origin, host: head.headers.first(name: "host"))
            || publicURL != nil && publicURL?.origin == origin?.lowercased()
    }

    /// Names the origin of the request, in place of any, where only some are allowed.
    func restrictOrigins(_ headers: inout HTTPHeaders, _ head: HTTPRequestHead) {
        guard !origins.allowsAny, headers.contains(name: Self.allowedOrigin) else { return }
        headers.remove(name: Self.allowedOrigin)
        headers.add(name: "Vary", value: "Origin")
        guard allows(head), let origin = head.headers.first(name: "origin") else { return }
        headers.add(name: Self.allowedOrigin, value: origin)
    }
}
