import AsyncHTTPClient
public import HatoFetch
public import HatoModel
import NIOCore
import NIOHTTP1

/// Delivers to apps that are registered with Firebase Cloud Messaging (FCM HTTP v1), with the service account of each
/// app.
///
/// A send gets its access token, and its response, within one time limit. Redirects are not followed, and of a response
/// only the beginning is read.
public struct FCMChannel: Channel {
    /// Bounds of the requests.
    public struct Limits: Sendable, Hashable {
        /// Of a send: access token, request and response.
        public var timeout: Duration = .seconds(15)
        /// Of the body of a response within it.
        public var bodyTimeout: Duration = .seconds(2)
        /// Of the request for an access token.
        public var tokenTimeout: Duration = .seconds(5)
        /// How long connecting may take.
        public var connectTimeout: Duration = .seconds(5)
        /// Of a response's body; a longer one costs its connection.
        public var responseBytesMax = 64 << 10
        /// Connections to one host, where it speaks HTTP/1.1.
        public var connectionsPerHostMax = 64

        public init() {}
    }

    private struct App {
        var account: FCMServiceAccount
        var tokens: FCMAccessTokens
    }

    public let platform = Notifier.Platform.fcm
    private let limits: Limits
    private let bodies: BodyTimeLimit
    private let client: ReplaceableClient
    private let userAgent: String
    private let now: @Sendable () -> Int64
    private let apps = AppTable<App>()

    /// A channel without credentials; `now` in milliseconds since 1970.
    public init(limits: Limits = Limits(), version: String, now: @escaping @Sendable () -> Int64) {
        self.limits = limits
        bodies = BodyTimeLimit(limits.bodyTimeout)
        self.now = now
        userAgent = "hato-notifier/\(version)"
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = .init(limits.connectTimeout)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = limits.connectionsPerHostMax
        client = ReplaceableClient(configuration)
    }

    /// Puts these credentials, by app, in place of all; deliveries that have begun use those before.
    public func replace(_ accounts: [String: FCMServiceAccount]) {
        apps.replace { present in
            accounts.mapValues { account in
                // The access token of credentials that stay is used again.
                present.values.first { $0.account == account } ?? App(account: account, tokens: tokens(of: account))
            }
        }
    }

    public func use(_ apps: PushApps) { replace(apps.apps.compactMapValues(\.fcm)) }

    public func check(_ address: DeviceAddress, for uid: String) async throws(AddressRefusal) -> DeviceAddress {
        guard case .fcm = address else { throw .invalidURL("it is no registration of FCM") }
        return address
    }

    /// Sends a message that must be refused for its registration alone, and that is never delivered. Nil when all is
    /// right; otherwise what is wrong, as a sentence.
    public func problem(of app: String) async -> String? {
        let content = DeliveryContent(notification: "check", device: "check", uid: "", text: .init(title: "check"))
        let registration = FCMRegistration.token("hato-check")
        let time = now()
        var delivery = Delivery(id: "check", address: .fcm(registration), content: content, createdAt: time)
        delivery.app = app
        delivery.expiresAt = time
        let response: DeliveryResponse
        switch await deliver(delivery, validatesOnly: true) {
        case .delivered, .deviceGone, .tokenRefused: return nil
        case .rejected(let refused):
            // FCM may name the field of the registration.
            if refused.error?.lowercased().contains("registration token") == true { return nil }
            response = refused
        case .failed(let failed, _), .postponed(let failed), .providerRefused(let failed, _): response = failed
        }
        let place = apps[app].map { "FCM of the project \($0.account.projectID)" } ?? "FCM"
        let status = response.status.map { " (HTTP status \($0))" } ?? ""
        return "\(place) cannot be used: \(response.error ?? "it failed")\(status)"
    }

    public func deliver(_ delivery: Delivery) async -> DeliveryOutcome {
        await deliver(delivery, validatesOnly: false)
    }

    public func shutdown() async { await client.shutdown() }

    /// The message has no target.
    public func preview(of delivery: Delivery) -> DeliveryPreview? {
        guard case .fcm = delivery.address, apps[delivery.app] != nil,
            let request = FCMRequest(delivery, to: nil, now: now())
        else { return nil }
        return DeliveryPreview(headers: [:], body: request.body)
    }

    private func deliver(_ delivery: Delivery, validatesOnly: Bool) async -> DeliveryOutcome {
        guard case .fcm(let registration) = delivery.address else {
            return .rejected(DeliveryResponse(error: "the device is no registration of FCM"))
        }
        guard let app = apps[delivery.app] else {
            let error = "the app \"\(delivery.app)\" has no FCM credentials"
            return .providerRefused(DeliveryResponse(error: error), retryAfter: nil)
        }
        guard let message = FCMRequest(delivery, to: registration, now: now(), validatesOnly: validatesOnly) else {
            return .rejected(DeliveryResponse(error: "the message is too large, even without its text"))
        }
        let send = Send(url: app.account.sendURL, registration: registration, body: message.body)
        let deadline = ContinuousClock.now + limits.timeout
        do {
            let token = try await app.tokens.token()
            let refused: DeliveryResponse
            switch await decision(of: send, token, until: deadline) {
            case .outcome(let outcome): return outcome
            case .accessTokenRefused(let response): refused = response
            }
            // Once more with another token, when there is time for it.
            guard deadline - .now > limits.tokenTimeout + limits.bodyTimeout + limits.bodyTimeout else {
                return .failed(refused, retryAfter: nil)
            }
            let other = try await app.tokens.token(insteadOf: token)
            switch await decision(of: send, other, until: deadline) {
            case .outcome(let outcome): return outcome
            case .accessTokenRefused(let response): return .providerRefused(response, retryAfter: nil)
            }
        } catch {
            return error.outcome
        }
    }

    private struct Send {
        var url: String
        var registration: FCMRegistration
        var body: [UInt8]

        var name: String {
            switch registration {
            case .token(let text), .installation(let text): text
            }
        }
    }

    private func decision(
        of send: Send, _ token: String, until deadline: ContinuousClock.Instant
    ) async -> FCMResponse.Decision {
        let left = deadline - .now - limits.bodyTimeout
        guard left > .zero else {
            let error = "the access token came too late for the send"
            return .outcome(.failed(DeliveryResponse(error: error), retryAfter: nil))
        }
        let headers: HTTPHeaders = [
            "content-type": "application/json", "authorization": "Bearer \(token)", "user-agent": userAgent,
        ]
        let post = BoundedCall.Post(url: send.url, headers: headers, body: send.body)
        let call = BoundedCall(timeout: left, bodies: bodies, bodyBytesMax: limits.responseBytesMax)
        do {
            let received = FCMReceived(try await client.response(call, post))
            return FCMResponse(received, secrets: [token, send.name], now: now() / 1_000).decision
        } catch {
            return .outcome(.failed(DeliveryResponse(error: error.reason), retryAfter: nil))
        }
    }

    private func tokens(of account: FCMServiceAccount) -> FCMAccessTokens {
        let source = FCMTokenSource(
            account: account, client: client,
            call: BoundedCall(
                timeout: limits.tokenTimeout, bodies: bodies, bodyBytesMax: limits.responseBytesMax),
            userAgent: userAgent, now: now)
        let start = ContinuousClock.now
        return FCMAccessTokens(elapsed: { .now - start }, fetch: { await source.token() })
    }
}

/// Exchanges the assertion of a service account for an access token (RFC 7523 §2.1).
private struct FCMTokenSource: Sendable {
    var account: FCMServiceAccount
    var client: ReplaceableClient
    var call: BoundedCall
    var userAgent: String
    var now: @Sendable () -> Int64

    func token() async -> Result<FCMAccessToken, FCMTokenFailure> {
        let seconds = now() / 1_000
        guard let assertion = try? account.assertion(now: seconds) else {
            let response = DeliveryResponse(error: "the key of the service account cannot sign")
            return .failure(FCMTokenFailure(outcome: .providerRefused(response, retryAfter: nil)))
        }
        let headers: HTTPHeaders = [
            "content-type": "application/x-www-form-urlencoded", "accept": "application/json",
            "user-agent": userAgent,
        ]
        // The characters of an assertion need no escape.
        let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
        let body = Array("grant_type=\(grant)&assertion=\(assertion)".utf8)
        let post = BoundedCall.Post(url: account.tokenURL, headers: headers, body: body)
        do {
            let received = FCMReceived(try await client.response(call, post))
            return FCMAccessToken.read(received, secrets: [assertion], now: seconds)
        } catch {
            let response = DeliveryResponse(error: "the token endpoint: \(error.reason)")
            return .failure(FCMTokenFailure(outcome: .failed(response, retryAfter: nil)))
        }
    }
}
