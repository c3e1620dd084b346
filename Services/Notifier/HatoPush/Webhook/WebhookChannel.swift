import AsyncHTTPClient
public import HatoFetch
public import HatoModel
import NIOCore
import NIOHTTP1

/// Delivers by Standard Webhooks: `POST` with `webhook-id`, `webhook-timestamp` and `webhook-signature`.
///
/// The address is checked before every call and the connection goes to the address that was checked. Redirects are not
/// followed, connections that cannot be made are not tried again here, and of an answer only the beginning is read.
public struct WebhookChannel: Channel {
    /// Bounds of webhook requests.
    public struct Limits: Sendable, Hashable {
        /// Resolving aside, from connecting to the status and the headers of the answer.
        public var timeout: Duration = .seconds(15)
        /// From there to the end of its body, which decides nothing; a later one costs its connection.
        public var bodyTimeout: Duration = .milliseconds(500)
        /// How long connecting may take.
        public var connectTimeout: Duration = .seconds(5)
        /// Of an answer's body; a longer one costs its connection.
        public var answerBytesMax = 16 << 10
        /// Connections to one receiver, over HTTP/1.1: as many as there may be attempts at one host.
        public var connectionsPerHostMax = 32
        /// Receivers whose connections are kept.
        public var clientsMax = 256

        public init() {}
    }

    public let platform = Notifier.Platform.webhook
    private let addressGuard: AddressGuard
    private let limits: Limits
    private let bodies: BodyTimeLimit
    private let clients: PinnedClients
    private let userAgent: String
    private let now: @Sendable () -> Int64

    /// `now` in milliseconds since 1970.
    public init(
        _ addressGuard: AddressGuard, limits: Limits = Limits(), version: String, now: @escaping @Sendable () -> Int64
    ) {
        self.init(addressGuard, limits: limits, version: version, now: now, client: HTTPClient.Configuration())
    }

    /// `client` carries what tests change: which certificates are trusted.
    init(
        _ addressGuard: AddressGuard, limits: Limits, version: String, now: @escaping @Sendable () -> Int64,
        client: HTTPClient.Configuration
    ) {
        self.addressGuard = addressGuard
        self.limits = limits
        bodies = BodyTimeLimit(limits.bodyTimeout)
        self.now = now
        userAgent = "hato-notifier/\(version)"
        var configuration = client
        configuration.timeout.connect = .init(limits.connectTimeout)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = limits.connectionsPerHostMax
        clients = PinnedClients(configuration, clientsMax: limits.clientsMax)
    }

    public func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        switch address {
        case .webhook(let url, let secrets):
            let admitted = try await addressGuard.admit(url, for: LookUpCaller(uid: uid, isDelivery: false))
            return .webhook(url: admitted.url.text, secrets: secrets)
        case .apns, .fcm, .webpush, .email: throw .invalidURL("it is no webhook")
        }
    }

    public func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        let admitted: AddressGuard.Admitted
        let signingSecrets: [WebhookSecret]
        switch delivery.address {
        case .webhook(let url, let secrets):
            signingSecrets = secrets
            let caller = LookUpCaller(uid: delivery.content.uid, isDelivery: true)
            do { admitted = try await addressGuard.admit(url, for: caller) } catch {
                let answer = DeliveryResponse(error: error.message)
                if case .noLookUp = error { return .postponed(answer) }
                return .failed(answer, retryAfter: nil)
            }
        case .apns, .fcm, .webpush, .email: return .rejected(DeliveryResponse(error: "the device is no webhook"))
        }
        // The attempt was ended during the look-up, before the receiver was called.
        if Task.isCancelled { return .postponed(DeliveryResponse(error: "the look-up took long")) }
        return await call(post(to: admitted, delivery, signingSecrets), to: admitted)
    }

    public func preview(of delivery: Delivery) -> DeliveryPreview? {
        guard case .webhook = delivery.address else { return nil }
        return DeliveryPreview(
            headers: ["content-type": "application/json", "webhook-id": delivery.id],
            body: WebhookBody.bytes(delivery))
    }

    public func shutdown() async { await clients.shutdown() }

    private func post(
        to admitted: AddressGuard.Admitted, _ delivery: Delivery, _ secrets: [WebhookSecret]
    ) -> BoundedCall.Post {
        let body = WebhookBody.bytes(delivery)
        let timestamp = now() / 1_000
        let headers: HTTPHeaders = [
            "content-type": "application/json", "user-agent": userAgent, "webhook-id": delivery.id,
            "webhook-timestamp": String(timestamp),
            "webhook-signature": WebhookSignature.sign(
                id: delivery.id, timestamp: timestamp, body: body, secrets: secrets),
        ]
        return BoundedCall.Post(url: admitted.url.text, headers: headers, body: body)
    }

    private func call(_ post: BoundedCall.Post, to admitted: AddressGuard.Admitted) async -> DeliveryOutcome {
        let call = BoundedCall(
            timeout: limits.timeout, bodies: bodies, bodyBytesMax: limits.answerBytesMax)
        do {
            let response = try await clients.response(call, post, to: admitted)
            let answer = WebhookResponse(
                status: response.status, retryAfter: response.headers.first(name: "retry-after"),
                excerpt: response.excerpt)
            return answer.outcome(now: now() / 1_000)
        } catch {
            return .failed(DeliveryResponse(error: error.reason), retryAfter: nil)
        }
    }
}
