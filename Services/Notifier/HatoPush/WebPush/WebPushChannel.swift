import AsyncHTTPClient
public import HatoFetch
public import HatoModel
import NIOCore
import NIOHTTP1

/// Delivers to the endpoints of browsers' push services and of UnifiedPush distributors (RFC 8030), encrypted for the
/// receiver (RFC 8291) and signed with the key of the app (RFC 8292).
///
/// An endpoint is what a user gave: it is checked before every call, the connection goes to the address that was
/// checked, redirects are not followed, and of a response only the beginning is read.
public struct WebPushChannel: Channel {
    /// Bounds of the requests.
    public struct Limits: Sendable, Hashable {
        /// Resolving aside, from connecting to the status and the headers of the response.
        public var timeout: Duration = .seconds(15)
        /// From there to the end of its body, which decides nothing; a later one costs its connection.
        public var bodyTimeout: Duration = .milliseconds(500)
        /// How long connecting may take.
        public var connectTimeout: Duration = .seconds(5)
        /// Of a response's body; a longer one costs its connection.
        public var responseBytesMax = 16 << 10
        /// Connections to one push service, over HTTP/1.1.
        public var connectionsPerHostMax = 32
        /// Push services whose connections are kept.
        public var clientsMax = 256

        public init() {}
    }

    /// Decides which endpoints are called.
    public struct Guards: Sendable {
        /// Of apps whose credentials say nothing else.
        public var standard: AddressGuard
        /// Of apps whose credentials allow private addresses.
        public var allowingPrivate: AddressGuard

        /// Guards that resolve names with `resolver`.
        public init(_ policy: AddressGuard.Policy, resolver: any HostResolver = SystemHostResolver()) {
            standard = AddressGuard(policy, resolver: resolver)
            allowingPrivate = AddressGuard(.init(allowsPrivate: true), resolver: resolver)
        }
    }

    public let platform = Notifier.Platform.webpush
    private let guards: Guards
    private let limits: Limits
    private let bodies: BodyTimeLimit
    private let clients: PinnedClients
    private let userAgent: String
    private let now: @Sendable () -> Int64
    private let apps = AppTable<WebPushSigner>()

    /// A channel without credentials; `now` in milliseconds since 1970.
    public init(_ guards: Guards, limits: Limits = Limits(), version: String, now: @escaping @Sendable () -> Int64) {
        self.guards = guards
        self.limits = limits
        bodies = BodyTimeLimit(limits.bodyTimeout)
        self.now = now
        userAgent = "hato-notifier/\(version)"
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .init(limits.connectTimeout)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = limits.connectionsPerHostMax
        clients = PinnedClients(configuration, clientsMax: limits.clientsMax)
    }

    /// Puts these credentials, by app, in place of all; deliveries that have begun use those before.
    public func replace(_ credentials: [String: WebPushCredentials]) {
        apps.replace { present in
            credentials.mapValues { credentials in
                // The tokens of credentials that stay are used again.
                present.values.first { $0.credentials == credentials } ?? WebPushSigner(credentials)
            }
        }
    }

    public func use(_ apps: PushApps) { replace(apps.apps.compactMapValues(\.webpush)) }

    /// The `applicationServerKey` of an app; nil when it has no credentials.
    public func publicKey(of app: String) -> String? { apps[app]?.credentials.publicKey }

    public func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        try await check(address, of: Delivery.defaultApp, for: uid)
    }

    public func check(
        _ address: DeviceAddress, of app: String, for uid: String
    ) async throws(AddressRefusal) -> DeviceAddress {
        guard case .webpush(var subscription) = address else { throw .invalidURL("it is no subscription of Web Push") }
        let caller = LookUpCaller(uid: uid, isDelivery: false)
        subscription.endpoint = try await addressGuard(of: apps[app]).admit(subscription.endpoint, for: caller).url.text
        return .webpush(subscription)
    }

    public func preview(of delivery: Delivery) -> DeliveryPreview? {
        guard case .webpush = delivery.address, apps[delivery.app] != nil,
            let push = WebPushRequest(delivery, now: now())
        else { return nil }
        return DeliveryPreview(headers: push.headers, body: push.plaintext)
    }

    public func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        guard case .webpush(let subscription) = delivery.address else {
            return .rejected(DeliveryResponse(error: "the device is no subscription of Web Push"))
        }
        guard let signer = apps[delivery.app] else {
            let error = "the app \"\(delivery.app)\" has no Web Push credentials"
            return .providerRefused(DeliveryResponse(error: error), retryAfter: nil)
        }
        guard let push = WebPushRequest(delivery, now: now()) else {
            return .rejected(DeliveryResponse(error: "the push is too large, even without its text"))
        }
        let admitted: AddressGuard.Admitted
        let caller = LookUpCaller(uid: delivery.content.uid, isDelivery: true)
        do { admitted = try await addressGuard(of: signer).admit(subscription.endpoint, for: caller) } catch {
            let response = DeliveryResponse(error: error.message)
            if case .noLookUp = error { return .postponed(response) }
            return .failed(response, retryAfter: nil)
        }
        // The attempt was ended during the look-up, before the push service was called.
        if Task.isCancelled { return .postponed(DeliveryResponse(error: "the look-up took long")) }
        let post: BoundedCall.Post
        do { post = try self.post(push, to: admitted, subscription, signer) } catch {
            return .rejected(DeliveryResponse(error: "the push cannot be encrypted"))
        }
        return await call(post, to: admitted)
    }

    public func shutdown() async { await clients.shutdown() }

    private func addressGuard(of signer: WebPushSigner?) -> AddressGuard {
        signer?.credentials.allowsPrivate == true ? guards.allowingPrivate : guards.standard
    }

    private func post(
        _ push: WebPushRequest, to admitted: AddressGuard.Admitted, _ subscription: WebPushSubscription,
        _ signer: WebPushSigner
    ) throws -> BoundedCall.Post {
        let body = try WebPushEncryption().body(
            push.plaintext, for: subscription, paddedTo: WebPushEncryption.paddedCount(push.plaintext.count))
        var headers: HTTPHeaders = [
            "content-type": "application/octet-stream", "content-encoding": "aes128gcm", "user-agent": userAgent,
            "authorization": try signer.authorization(for: admitted.url, now: now() / 1_000),
        ]
        for (name, value) in push.headers { headers.add(name: name, value: value) }
        return BoundedCall.Post(url: admitted.url.text, headers: headers, body: body)
    }

    private func call(_ post: BoundedCall.Post, to admitted: AddressGuard.Admitted) async -> DeliveryOutcome {
        let call = BoundedCall(
            timeout: limits.timeout, bodies: bodies, bodyBytesMax: limits.responseBytesMax)
        do {
            let response = try await clients.response(call, post, to: admitted)
            let answer = WebPushResponse(
                status: response.status, retryAfter: response.headers.first(name: "retry-after"),
                location: response.headers.first(name: "location"), excerpt: response.excerpt)
            return answer.outcome(now: now() / 1_000)
        } catch {
            return .failed(DeliveryResponse(error: error.reason), retryAfter: nil)
        }
    }
}
