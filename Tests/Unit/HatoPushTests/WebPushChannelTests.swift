import HatoFetch
import HatoModel
import HatoRuntime
import HatoTesting
import Testing

@testable import HatoPush

/// Every name is this machine.
private struct LoopbackResolver: HostResolver {
    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        [.v4(0x7F00_0001)]
    }
}

@Suite(.timeLimit(.minutes(10))) struct WebPushChannelTests {
    private static let now: Int64 = 1_795_000_000_500
    private let browser = WebPushReceiver()
    private let key = WebPushCredentials.newKey()

    private func channel(allowsPrivate: Bool = true, timeout: Duration = .seconds(240)) throws -> WebPushChannel {
        var limits = WebPushChannel.Limits()
        limits.timeout = timeout
        limits.bodyTimeout = .seconds(240)
        limits.connectTimeout = .seconds(240)
        let channel = WebPushChannel(
            .init(.init(), resolver: LoopbackResolver()), limits: limits, version: "0.1.0", now: { Self.now })
        let credentials = try WebPushCredentials(
            key: key, subject: "mailto:a@example.com", allowsPrivate: allowsPrivate)
        channel.replace(["default": credentials])
        return channel
    }

    private func delivery(to url: String, app: String = "default") throws -> Delivery {
        var content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2", text: .init(title: "マスオさんからのメッセージ", body: "ただいま 🍶"))
        content.data = ["chat": "c1"]
        var delivery = Delivery(
            id: "ntf_1-0", address: .webpush(try browser.subscription(url)), content: content, createdAt: Self.now)
        delivery.app = app
        delivery.expiresAt = Self.now + 60_000
        return delivery
    }

    private func with(
        _ channel: WebPushChannel, answer: @escaping @Sendable (Int) async -> HTTPResponse,
        _ body: (Receiver) async throws -> Void
    ) async throws {
        let receiver = try await Receiver(answer: answer)
        do {
            try await body(receiver)
        } catch {
            await receiver.stop()
            await channel.shutdown()
            throw error
        }
        await receiver.stop()
        await channel.shutdown()
    }

    @Test func theBrowserReadsWhatWasSentAndThePushServiceKnowsTheSender() async throws {
        let channel = try channel()
        let location = "https://push.example.com/m/1"
        try await with(channel, answer: { _ in HTTPResponse(status: 201, headers: [("location", location)]) }) {
            receiver in
            let delivery = try delivery(to: "http://push.test:\(receiver.port)/send/abc?x=1")
            let outcome = await channel.deliver(delivery)
            #expect(outcome == .delivered(DeliveryResponse(status: 201, providerID: location)))
            let received = try #require(receiver.received.first)
            #expect(received.target == "/send/abc?x=1" && received.host == "push.test:\(receiver.port)")
            let text = try JSONParser.parse(try browser.text(of: received.body))
            #expect(text["notification"]?["title"] == "マスオさんからのメッセージ")
            #expect(text["notification"]?["body"] == "ただいま 🍶" && text["web_push"] == 8030)
            #expect(received.fields["content-encoding"] == "aes128gcm" && received.fields["ttl"] == "60")
            #expect(received.fields["urgency"] == "high" && received.fields["topic"]?.count == 32)
            let authorization = try #require(received.fields["authorization"])
            let token = String(authorization.dropFirst("vapid t=".count).prefix { $0 != "," })
            let publicKey = try #require(channel.publicKey(of: "default"))
            let claims = try #require(try es256Claims(token, publicKey)).claims
            #expect(claims["aud"]?.string == "http://push.test:\(receiver.port)")
            #expect(claims["exp"]?.integer == Self.now / 1_000 + 12 * 3_600)
            #expect(authorization.hasSuffix("k=\(publicKey)"))
        }
    }

    @Test func theTokenOfAnOriginIsUsedAgainAlsoAfterAReload() async throws {
        let channel = try channel()
        try await with(channel, answer: { _ in HTTPResponse(status: 201) }) { receiver in
            let delivery = try delivery(to: "http://push.test:\(receiver.port)/a")
            _ = await channel.deliver(delivery)
            channel.replace([
                "default": try WebPushCredentials(key: key, subject: "mailto:a@example.com", allowsPrivate: true)
            ])
            _ = await channel.deliver(delivery)
            channel.replace([
                "default": try WebPushCredentials(key: key, subject: "mailto:b@example.com", allowsPrivate: true)
            ])
            _ = await channel.deliver(delivery)
            let headers = receiver.received.map { $0.fields["authorization"] }
            #expect(headers.count == 3 && headers[0] == headers[1] && headers[1] != headers[2])
            #expect(Set(receiver.received.map(\.body)).count == 3)
        }
    }

    @Test func responsesDecide() async throws {
        let channel = try channel()
        let statuses = [410, 503, 403, 307]
        try await with(
            channel,
            answer: { count in
                let headers = [("retry-after", "7"), ("location", "http://127.0.0.1:1/")]
                return HTTPResponse(status: statuses[count - 1], headers: headers, body: Array("x\ny".utf8))
            }
        ) { receiver in
            let delivery = try delivery(to: "http://push.test:\(receiver.port)/a")
            var outcomes: [DeliveryOutcome] = []
            for _ in statuses { outcomes.append(await channel.deliver(delivery)) }
            func response(_ status: Int, _ error: String) -> DeliveryResponse {
                DeliveryResponse(status: status, error: error + ": x y")
            }
            #expect(
                outcomes == [
                    .deviceGone(response(410, "the subscription is gone"), since: nil),
                    .failed(response(503, "the push service is busy"), retryAfter: .seconds(7)),
                    .failed(response(403, "the push service refuses the signature"), retryAfter: nil),
                    .failed(response(307, "redirects are not followed"), retryAfter: nil),
                ])
        }
    }

    @Test func onlyTheEndpointsOfAnAppThatAllowsItMayBePrivate() async throws {
        let channel = try channel(allowsPrivate: false)
        try await with(channel, answer: { _ in HTTPResponse(status: 201) }) { receiver in
            channel.replace([
                "default": try WebPushCredentials(key: key, subject: "mailto:a@example.com"),
                "inside": try WebPushCredentials(key: key, subject: "mailto:a@example.com", allowsPrivate: true),
            ])
            let url = "http://push.test:\(receiver.port)/a"
            let address = try delivery(to: url).address
            await #expect(throws: AddressRefusal.plainHTTP) { try await channel.check(address, for: "u") }
            await #expect(throws: AddressRefusal.plainHTTP) { try await channel.check(address, of: "x", for: "u") }
            let inside = try delivery(to: "https://push.test/a").address
            await #expect(throws: AddressRefusal.privateAddress(host: "push.test")) {
                try await channel.check(inside, for: "u")
            }
            #expect(try await channel.check(address, of: "inside", for: "u") == address)
            let refused = await channel.deliver(try delivery(to: url))
            #expect(refused == .failed(DeliveryResponse(error: AddressRefusal.plainHTTP.message), retryAfter: nil))
            #expect(receiver.received.isEmpty)
            let sent = await channel.deliver(try delivery(to: url, app: "inside"))
            #expect(sent == .delivered(DeliveryResponse(status: 201)))
        }
    }

    @Test func anEndpointIsKeptInItsNormalSpelling() async throws {
        let channel = try channel()
        let checked = try await channel.check(try delivery(to: "HTTPS://Push.Test:443").address, for: "u")
        #expect(checked == (try delivery(to: "https://push.test/").address))
        await #expect(throws: AddressRefusal.self) {
            try await channel.check(.webhook(url: "https://push.test/", secrets: []), for: "u")
        }
        await channel.shutdown()
    }

    @Test func withoutCredentialsAnAppWaits() async throws {
        let channel = try channel()
        let outcome = await channel.deliver(try delivery(to: "https://push.test/", app: "other"))
        let error = "the app \"other\" has no Web Push credentials"
        #expect(outcome == .providerRefused(DeliveryResponse(error: error), retryAfter: nil))
        #expect(channel.publicKey(of: "other") == nil)
        var webhook = try delivery(to: "https://push.test/")
        webhook.address = .webhook(url: "https://push.test/", secrets: [])
        guard case .rejected = await channel.deliver(webhook) else {
            Issue.record("a webhook is no subscription")
            return
        }
        await channel.shutdown()
    }

    @Test func whatIsTooLargeIsNotSent() async throws {
        let channel = try channel()
        var delivery = try delivery(to: "http://127.0.0.1:1/")
        delivery.content.data = ["x": String(repeating: "x", count: 4_000)]
        guard case .rejected(let response) = await channel.deliver(delivery) else {
            Issue.record("it was sent")
            return
        }
        #expect(response.status == nil && response.error?.contains("too large") == true)
        await channel.shutdown()
    }

    @Test func aSilentPushServiceIsAFailureAtTheTimeLimit() async throws {
        let channel = try channel(timeout: .milliseconds(200))
        let (silence, end) = AsyncStream.makeStream(of: Void.self)
        try await with(
            channel,
            answer: { _ in
                for await _ in silence {}
                return HTTPResponse(status: 201)
            }
        ) { receiver in
            let outcome = await channel.deliver(try delivery(to: "http://127.0.0.1:\(receiver.port)/"))
            end.finish()
            guard case .failed(let response, nil) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(response.status == nil && response.error != nil)
        }
    }
}
