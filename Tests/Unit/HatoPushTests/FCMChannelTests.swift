import AsyncHTTPClient
import HatoFetch
import HatoModel
import HatoRuntime
import HatoTesting
import Testing

@testable import HatoPush

@Suite(.timeLimit(.minutes(10))) struct FCMChannelTests {
    private static let now: Int64 = 1_795_000_000_500
    private static let sent = #"{"name":"projects/chat-1/messages/1"}"#

    private static func response(_ status: Int, _ body: String) -> HTTPResponse {
        HTTPResponse(status: status, headers: [("content-type", "application/json")], body: Array(body.utf8))
    }

    private static func token(_ text: String) -> HTTPResponse {
        response(200, #"{"access_token":"\#(text)","expires_in":3599,"token_type":"Bearer"}"#)
    }

    private func delivery(_ registration: FCMRegistration = .token("t1"), app: String = "default") -> Delivery {
        var content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2", text: .init(title: "マスオさんからのメッセージ", body: "ただいま 🍶"))
        content.data = ["chat": "c1"]
        var delivery = Delivery(id: "ntf_1-0", address: .fcm(registration), content: content, createdAt: Self.now)
        delivery.app = app
        delivery.expiresAt = Self.now + 60_000
        return delivery
    }

    /// `response` gets the path and how often this one was called.
    private func with(
        _ limits: FCMChannel.Limits? = nil,
        response: @escaping @Sendable (String, Int) async -> HTTPResponse,
        _ body: (FCMChannel, Receiver) async throws -> Void
    ) async throws {
        let tokens = RequestCount()
        let sends = RequestCount()
        let receiver = try await Receiver(response: { received, _ in
            await response(received.target, (received.target == "/token" ? tokens : sends).next())
        })
        var usual = FCMChannel.Limits()
        usual.timeout = .seconds(500)
        usual.tokenTimeout = .seconds(120)
        usual.bodyTimeout = .seconds(60)
        usual.connectTimeout = .seconds(120)
        let channel = FCMChannel(limits: limits ?? usual, version: "0.1.0", now: { Self.now })
        do {
            channel.replace(["default": try TestServiceAccount.account(port: receiver.port)])
            try await body(channel, receiver)
        } catch {
            await receiver.stop()
            await channel.shutdown()
            throw error
        }
        await receiver.stop()
        await channel.shutdown()
    }

    @Test func aMessageIsSentWithAnAccessTokenThatIsFetchedOnce() async throws {
        try await with { path, _ in
            path == "/token" ? Self.token("ya29.a") : Self.response(200, Self.sent)
        } _: { channel, receiver in
            let expected = DeliveryOutcome.delivered(
                DeliveryResponse(status: 200, providerID: "projects/chat-1/messages/1"))
            let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<20 { group.addTask { await channel.deliver(delivery()) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes == Array(repeating: expected, count: 20))
            #expect(await channel.deliver(delivery(.installation("f1"))) == expected)
            let tokens = receiver.received.filter { $0.target == "/token" }
            let form = try #require(tokens.first.map { String(decoding: $0.body, as: UTF8.self) })
            let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
            #expect(tokens.count == 1 && form.hasPrefix(prefix))
            #expect(tokens.first?.fields["content-type"] == "application/x-www-form-urlencoded")
            let claims = try TestServiceAccount.read(String(form.dropFirst(prefix.count))).claims
            #expect(claims["aud"]?.string == "http://127.0.0.1:\(receiver.port)/token")
            #expect(claims["iat"]?.integer == Self.now / 1_000)
            let send = try #require(receiver.received.last)
            #expect(send.target == "/v1/projects/chat-1/messages:send")
            #expect(send.fields["authorization"] == "Bearer ya29.a")
            #expect(send.fields["content-type"] == "application/json")
            let message = try JSONParser.parse(send.body)["message"]
            #expect(message?["notification"]?["title"] == "マスオさんからのメッセージ" && message?["fid"] == "f1")
        }
    }

    @Test func aRefusedAccessTokenIsReplacedOnce() async throws {
        try await with { path, count in
            if path == "/token" { return Self.token("token-\(count)") }
            return count == 1 ? Self.response(401, "{}") : Self.response(200, Self.sent)
        } _: { channel, receiver in
            guard case .delivered = await channel.deliver(delivery()) else {
                Issue.record("it was not tried again")
                return
            }
            let sends = receiver.received.filter { $0.target != "/token" }.map { $0.fields["authorization"] }
            #expect(sends == ["Bearer token-1", "Bearer token-2"])
        }
    }

    @Test func anAppWhoseAccessTokensAreAllRefusedWaits() async throws {
        try await with { path, count in
            path == "/token" ? Self.token("token-\(count)") : Self.response(401, "no token-\(count) for t1")
        } _: { channel, receiver in
            let response = DeliveryResponse(status: 401, error: "FCM refuses the access token: no … for …")
            #expect(await channel.deliver(delivery()) == .providerRefused(response, retryAfter: nil))
            #expect(receiver.received.count == 4)
        }
    }

    /// The key for APNs in the Firebase project is wrong: another access token changes nothing.
    @Test func theErrorOfAThirdPartyRefreshesNoAccessToken() async throws {
        let error = #"""
            {"error":{"message":"m","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError",
            "errorCode":"THIRD_PARTY_AUTH_ERROR"}]}}
            """#
        try await with { path, _ in
            path == "/token" ? Self.token("a") : Self.response(401, error)
        } _: {
            channel, receiver in
            guard case .failed = await channel.deliver(delivery()) else {
                Issue.record("it is not tried again")
                return
            }
            #expect(receiver.received.count == 2)
        }
    }

    @Test func aTokenEndpointThatFailsSendsNothing() async throws {
        let error = #"{"error":"invalid_grant","error_description":"Invalid JWT Signature."}"#
        try await with { _, count in
            count == 1 ? Self.response(503, "") : Self.response(400, error)
        } _: {
            channel, receiver in
            let failed = DeliveryResponse(status: 503, error: "the token endpoint failed")
            #expect(await channel.deliver(delivery()) == .failed(failed, retryAfter: nil))
            let said = "the token endpoint refuses the service account: invalid_grant: Invalid JWT Signature."
            let refused = DeliveryResponse(status: 400, error: said)
            #expect(await channel.deliver(delivery()) == .providerRefused(refused, retryAfter: nil))
            #expect(receiver.received.allSatisfy { $0.target == "/token" })
        }
    }

    @Test func onlyTheBeginningOfALongResponseIsRead() async throws {
        let long = String(repeating: "x", count: 4 << 20)
        try await with { path, _ in
            path == "/token" ? Self.token("a") : Self.response(500, long)
        } _: { channel, _ in
            guard case .failed(let response, nil) = await channel.deliver(delivery()) else {
                Issue.record("500 is no failure")
                return
            }
            #expect(response.status == 500 && (response.error ?? "").utf8.count < 300)
        }
    }

    /// The time limit of the send is minutes.
    @Test(arguments: [200, 503])
    func aBodyThatNeverEndsIsNotWaitedFor(status: Int) async throws {
        var limits = FCMChannel.Limits()
        limits.timeout = .seconds(500)
        limits.tokenTimeout = .seconds(120)
        limits.bodyTimeout = .milliseconds(500)
        try await with(limits) { _, _ in
            Self.token("a")
        } _: { channel, receiver in
            let endless = try RawReceiver(sends: "HTTP/1.1 \(status) X\r\ncontent-length: 1000\r\n\r\n{")
            let file = try TestServiceAccount.file(tokenURL: "http://127.0.0.1:\(receiver.port)/token")
            channel.replace([
                "default": try FCMServiceAccount(
                    JSONValue.object(file).encoded, url: "http://127.0.0.1:\(endless.port)", allowsLoopback: true)
            ])
            switch await channel.deliver(delivery()) {
            case .delivered(let response): #expect(status == 200 && response == DeliveryResponse(status: 200))
            case .failed(let response, nil): #expect(status == 503 && response.error == "FCM failed: {")
            case let outcome: Issue.record("\(outcome)")
            }
            try await eventually("its connection is closed") { endless.isClosed }
        }
    }

    @Test func withoutCredentialsAnAppWaits() async throws {
        try await with { _, _ in
            Self.token("a")
        } _: { channel, receiver in
            let error = "the app \"other\" has no FCM credentials"
            #expect(
                await channel.deliver(delivery(app: "other"))
                    == .providerRefused(DeliveryResponse(error: error), retryAfter: nil))
            var webhook = delivery()
            webhook.address = .webhook(url: "https://example.com/", secrets: [])
            guard case .rejected = await channel.deliver(webhook) else {
                Issue.record("a webhook is no registration")
                return
            }
            var long = delivery()
            long.content.data = ["x": String(repeating: "x", count: 4_096)]
            guard case .rejected = await channel.deliver(long) else {
                Issue.record("a message that is too large was sent")
                return
            }
            #expect(receiver.received.isEmpty)
            let checked = try await channel.check(.fcm(.token("t")), for: "u")
            #expect(checked == .fcm(.token("t")))
            await #expect(throws: AddressRefusal.self) { try await channel.check(webhook.address, for: "u") }
        }
    }

    @Test func credentialsThatStayKeepTheirAccessToken() async throws {
        try await with { path, count in
            path == "/token" ? Self.token("token-\(count)") : Self.response(200, Self.sent)
        } _: { channel, receiver in
            _ = await channel.deliver(delivery())
            channel.replace(["default": try TestServiceAccount.account(port: receiver.port)])
            _ = await channel.deliver(delivery())
            #expect(receiver.received.count { $0.target == "/token" } == 1)
            channel.replace([:])
            guard case .providerRefused = await channel.deliver(delivery()) else {
                Issue.record("the credentials are still used")
                return
            }
        }
    }

    @Test func aSilentServerIsAFailureAtTheTimeLimit() async throws {
        var limits = FCMChannel.Limits()
        limits.timeout = .milliseconds(400)
        limits.bodyTimeout = .milliseconds(100)
        let (silence, end) = AsyncStream.makeStream(of: Void.self)
        let over = Task { for await _ in silence {} }
        try await with(limits) { path, _ in
            if path == "/token" { return Self.token("a") }
            await over.value
            return Self.response(200, Self.sent)
        } _: { channel, _ in
            guard case .failed(let response, nil) = await channel.deliver(delivery()) else {
                Issue.record("silence is no failure")
                return
            }
            end.finish()
            #expect(response.status == nil && response.error != nil)
        }
    }

    // MARK: The check of an app

    private static let invalidToken = #"""
        {"error":{"message":"The registration token is not a valid FCM registration token","details":[
        {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"INVALID_ARGUMENT"}]}}
        """#

    @Test func anAppIsRightWhenOnlyTheRegistrationIsRefused() async throws {
        try await with { path, _ in
            path == "/token" ? Self.token("a") : Self.response(400, Self.invalidToken)
        } _: { channel, receiver in
            #expect(await channel.problem(of: "default") == nil)
            let request = try JSONParser.parse(try #require(receiver.received.last).body)
            #expect(request["validate_only"] == true && request["message"]?["token"] != nil)
        }
    }

    @Test func whatIsWrongWithAnAppIsASentence() async throws {
        let denied = #"{"error":{"code":403,"message":"Permission denied on project.","status":"PERMISSION_DENIED"}}"#
        try await with { path, _ in
            path == "/token" ? Self.token("a") : Self.response(403, denied)
        } _: {
            channel, _ in
            #expect(
                await channel.problem(of: "default")
                    == "FCM of the project chat-1 cannot be used: the service account may not send to this project: "
                    + "Permission denied on project. (HTTP status 403)")
            #expect(
                await channel.problem(of: "x") == "FCM cannot be used: the app \"x\" has no FCM credentials")
        }
    }
}

/// How often something was asked for.
private actor RequestCount {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}

@Suite(.timeLimit(.minutes(10))) struct ReplaceableClientTests {
    private func outcome(_ client: ReplaceableClient, port: Int, _ timeout: Duration) async -> String {
        let call = BoundedCall(timeout: timeout, bodies: BodyTimeLimit(.seconds(60)), bodyBytesMax: 100)
        do {
            let post = BoundedCall.Post(url: "http://127.0.0.1:\(port)/", body: [])
            let response = try await client.response(call, post)
            return String(response.status)
        } catch {
            return error.isLate ? "late" : error.reason
        }
    }

    @Test func aClientIsReplacedAfterTwoTimeLimitsInARow() async throws {
        let (silence, end) = AsyncStream.makeStream(of: Void.self)
        let over = Task { for await _ in silence {} }
        let silent = try await Receiver { _ in
            await over.value
            return HTTPResponse(status: 200)
        }
        let speaking = try await Receiver { _ in HTTPResponse(status: 204) }
        let client = ReplaceableClient(HTTPClient.Configuration())
        func call(_ receiver: Receiver, _ timeout: Duration) async -> String {
            await outcome(client, port: receiver.port, timeout)
        }
        #expect(await call(silent, .milliseconds(100)) == "late")
        #expect(await call(speaking, .seconds(240)) == "204")
        #expect(await call(silent, .milliseconds(100)) == "late")
        #expect(client.generation == 0)
        #expect(await call(silent, .milliseconds(100)) == "late")
        #expect(client.generation == 1)
        #expect(await call(speaking, .seconds(240)) == "204")
        end.finish()
        await client.shutdown()
        #expect(await call(speaking, .seconds(240)) == "the notifier is stopping")
        await silent.stop()
        await speaking.stop()
    }
}
