import AsyncHTTPClient
public import HatoFetch
public import HatoModel
import NIOCore
import NIOHTTP1
import Synchronization

/// Delivers to devices of Apple's push service over HTTP/2, with the key of each app.
///
/// A request is made once, or twice when APNs finds the provider token too old. Redirects are not followed, and of a
/// response only the beginning is read.
public struct APNsChannel: Channel {
    /// Bounds of the requests.
    public struct Limits: Sendable, Hashable {
        /// Of a request, from connecting to the status of its response.
        public var timeout: Duration = .seconds(15)
        /// Of the body of a response.
        public var bodyTimeout: Duration = .seconds(2)
        /// How long a push waits for the one that proves the provider token on a new connection.
        public var turnTimeout: Duration = .seconds(10)
        /// How long connecting may take.
        public var connectTimeout: Duration = .seconds(5)
        /// How long a connection without requests is kept. Some networks forget one after 6 minutes.
        public var idleTimeout: Duration = .seconds(300)
        /// Of a response's body; a longer one costs its stream.
        public var responseBytesMax = 16 << 10

        public init() {}
    }

    /// Where a request goes, and with what.
    private struct Target {
        var credentials: APNsCredentials
        var environment: Notifier.APNsEnvironment
        var link: APNsLink
    }

    public let platform = Notifier.Platform.apns
    private let limits: Limits
    private let bodies: BodyTimeLimit
    private let links: APNsLinks
    private let tokens = APNsProviderTokens()
    private let userAgent: String
    private let now: @Sendable () -> Int64
    private let apps = AppTable<APNsCredentials>()

    /// A channel without credentials; `now` in milliseconds since 1970.
    public init(limits: Limits = Limits(), version: String, now: @escaping @Sendable () -> Int64) {
        self.limits = limits
        bodies = BodyTimeLimit(limits.bodyTimeout)
        self.now = now
        userAgent = "hato-notifier/\(version)"
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .init(limits.connectTimeout)
        configuration.connectionPool.idleTimeout = .init(limits.idleTimeout)
        links = APNsLinks(configuration)
    }

    /// Puts these credentials, by app, in place of all; deliveries that have begun use those before.
    public func replace(_ credentials: [String: APNsCredentials]) {
        apps.replace { _ in credentials }
        // A topic that goes, or a key that changes, takes its connections with it.
        let used = Set(
            credentials.values.flatMap { app in
                Notifier.APNsEnvironment.allCases.flatMap { environment in
                    APNsRequest.topics(of: app.app.topic).map { APNsLink.Key(app, environment, topic: $0) }
                }
            })
        links.keep(used)
        let signers = Set(used.map(\.signer))
        tokens.keep(signers.contains)
    }

    public func use(_ apps: PushApps) { replace(apps.apps.compactMapValues(\.apns)) }

    public func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        guard case .apns = address else { throw .invalidURL("it is no device of APNs") }
        return address
    }

    /// In the environment that the app's devices have unless they name one.
    public func problem(of app: String) async -> String? {
        await check(app: app, environment: apps[app]?.environment ?? .production)
    }

    /// Sends a push that must be refused for its token only. Returns what is wrong with the credentials, as a sentence;
    /// nil when they are good.
    public func check(app: String, environment: Notifier.APNsEnvironment) async -> String? {
        guard let device = try? APNsDevice(token: String(repeating: "0", count: 64), environment: environment) else {
            return nil
        }
        let content = DeliveryContent(notification: "check", device: "check", uid: "", text: .init(title: "check"))
        var delivery = Delivery(id: "check", address: .apns(device), content: content, createdAt: now())
        delivery.app = app
        delivery.expiresAt = delivery.createdAt
        let response: DeliveryResponse
        switch await deliver(delivery) {
        case .delivered, .deviceGone, .tokenRefused: return nil
        case .failed(let other, _), .postponed(let other), .rejected(let other), .providerRefused(let other, _):
            response = other
        }
        let key = apps[app].map { ", with the key \($0.app.keyID) of the team \($0.app.teamID) for \($0.app.topic)," }
        let status = response.status.map { " (HTTP status \($0))" } ?? ""
        let error = response.error ?? "it failed"
        return "APNs (\(environment.rawValue))\(key ?? "") cannot be used: \(error)\(status)"
    }

    public func preview(of delivery: Delivery) -> DeliveryPreview? {
        guard case .apns(let device) = delivery.address, let credentials = apps[delivery.app],
            let request = try? APNsRequest(delivery, to: device, topic: credentials.app.topic, now: now())
        else { return nil }
        return DeliveryPreview(headers: request.headers, body: request.payload)
    }

    public func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        guard case .apns(let device) = delivery.address else {
            return .rejected(DeliveryResponse(error: "the device is none of APNs"))
        }
        guard let credentials = apps[delivery.app] else {
            let error = "the app \"\(delivery.app)\" has no APNs credentials"
            return .providerRefused(DeliveryResponse(error: error), retryAfter: nil)
        }
        let request: APNsRequest
        do {
            request = try APNsRequest(delivery, to: device, topic: credentials.app.topic, now: now())
        } catch {
            return .rejected(DeliveryResponse(error: error.text))
        }
        let key = APNsLink.Key(credentials, device.environment, topic: request.topic)
        guard let link = links.link(key) else { return .postponed(DeliveryResponse(error: "the notifier is stopping")) }
        guard let turn = await link.turn(within: limits.turnTimeout) else {
            let error = Task.isCancelled ? "the notifier is stopping" : "APNs responded to no push before this one"
            return .postponed(DeliveryResponse(error: error))
        }
        let target = Target(credentials: credentials, environment: device.environment, link: link)
        let (outcome, proof) = await exchange(request, target)
        link.ended(turn, proof)
        return outcome
    }

    public func shutdown() async { await links.shutdown() }

    // MARK: One request

    private typealias Exchange = (outcome: DeliveryOutcome, proof: APNsLink.Proof)

    private func exchange(_ request: APNsRequest, _ target: Target) async -> Exchange {
        let seconds = now() / 1_000
        let noSignature = DeliveryOutcome.providerRefused(
            DeliveryResponse(error: "the key of APNs cannot sign"), retryAfter: nil)
        guard let token = try? tokens.token(of: target.credentials, target.environment, now: seconds) else {
            return (noSignature, .nothing)
        }
        let refused: DeliveryResponse
        switch await call(request, target, token) {
        case .ended(let exchange): return exchange
        case .expired(let response): refused = response
        }
        do {
            let other = try tokens.token(
                insteadOf: token, of: target.credentials, target.environment, now: now() / 1_000)
            guard let other else { return (.providerRefused(refused, retryAfter: nil), .refused) }
            switch await call(request, target, other) {
            case .ended(let exchange): return exchange
            case .expired(let response): return (.providerRefused(response, retryAfter: nil), .refused)
            }
        } catch {
            return (noSignature, .nothing)
        }
    }

    private enum Called {
        case ended(Exchange)
        case expired(DeliveryResponse)
    }

    private func call(_ request: APNsRequest, _ target: Target, _ token: String) async -> Called {
        var headers: HTTPHeaders = ["authorization": "bearer \(token)", "user-agent": userAgent]
        for (name, value) in request.headers { headers.add(name: name, value: value) }
        let post = BoundedCall.Post(url: target.link.url + request.path, headers: headers, body: request.payload)
        let call = BoundedCall(
            timeout: limits.timeout, bodies: bodies, bodyBytesMax: limits.responseBytesMax)
        let time = now()
        do {
            let received = try await target.link.response(call, post) { APNsResponse($0, now: time).isShutdown }
            let response = APNsResponse(received, now: time)
            switch response.decision {
            case .outcome(let outcome): return .ended((outcome, response.proof))
            case .providerTokenExpired(let refused): return .expired(refused)
            }
        } catch {
            return .ended((.failed(DeliveryResponse(error: error.reason), retryAfter: nil), .nothing))
        }
    }
}

/// The connections of all keys, environments and topics.
private final class APNsLinks: Sendable {
    private struct State {
        var links: [APNsLink.Key: APNsLink] = [:]
        var isShutDown = false
    }

    private let configuration: HTTPClient.Configuration
    private let state = Mutex(State())

    init(_ configuration: HTTPClient.Configuration) { self.configuration = configuration }

    /// Nil after `shutdown`.
    func link(_ key: APNsLink.Key) -> APNsLink? {
        state.withLock { state in
            guard !state.isShutDown else { return nil }
            if let link = state.links[key] { return link }
            let link = APNsLink(key, configuration)
            state.links[key] = link
            return link
        }
    }

    /// Closes all others, after their requests.
    func keep(_ used: Set<APNsLink.Key>) {
        let others = state.withLock { state in
            let others = state.links.filter { !used.contains($0.key) }
            for key in others.keys { state.links[key] = nil }
            return Array(others.values)
        }
        for link in others { Task { await link.shutdown() } }
    }

    func shutdown() async {
        let all = state.withLock { state in
            state.isShutDown = true
            let all = Array(state.links.values)
            state.links = [:]
            return all
        }
        for link in all { await link.shutdown() }
    }
}

extension APNsResponse {
    fileprivate init(_ response: BoundedCall.Response, now: Int64) {
        self.init(status: response.status, headers: response.headers, body: response.body, now: now)
    }
}

extension APNsRequest.Problem {
    fileprivate var text: String {
        switch self {
        case .payloadTooLarge: "PayloadTooLarge: the payload is too large, even without its text"
        case .otherTopic: "platforms.apns.headers.apns-topic is none of the app"
        }
    }
}
