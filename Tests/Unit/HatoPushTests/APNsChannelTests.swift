import HatoModel
import HatoTesting
import Synchronization
import TestCertificates
import Testing

@testable import HatoPush

@Suite(.timeLimit(.minutes(10))) struct APNsChannelTests {
    private static let now: Int64 = 1_795_000_000_500
    private let key = APNsTestKey()
    private let device: APNsDevice

    init() throws {
        device = try APNsDevice(token: String(repeating: "0a", count: 32), environment: .production)
    }

    private func delivery(_ id: String = "ntf_1-0", app: String = "default") -> Delivery {
        let content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2", text: .init(title: "マスオさん", body: "ただいま 🍶"))
        var delivery = Delivery(id: id, address: .apns(device), content: content, createdAt: Self.now)
        delivery.app = app
        delivery.expiresAt = Self.now + 60_000
        return delivery
    }

    /// Limits that no test reaches.
    private func limits(_ change: (inout APNsChannel.Limits) -> Void = { _ in }) -> APNsChannel.Limits {
        var limits = APNsChannel.Limits()
        limits.timeout = .seconds(300)
        limits.turnTimeout = .seconds(300)
        limits.bodyTimeout = .seconds(60)
        limits.connectTimeout = .seconds(120)
        change(&limits)
        return limits
    }

    /// A sink, and a channel whose app `default` has it in place of Apple's.
    private func with(
        _ limits: APNsChannel.Limits? = nil, streamsMax: Int = 1_000,
        answer: @escaping @Sendable (APNsSink.Received, Int) async -> APNsSink.Answer,
        _ body: (APNsChannel, APNsSink, TestCertificates) async throws -> Void
    ) async throws {
        let certificates = try TestCertificates()
        let sink = try await APNsSink(certificates, streamsMax: streamsMax, answer: answer)
        let channel = APNsChannel(limits: limits ?? self.limits(), version: "0.1.0", now: { Self.now })
        do {
            channel.replace(["default": try key.credentials(port: sink.port, trusting: certificates)])
            try await body(channel, sink, certificates)
        } catch {
            await channel.shutdown()
            await sink.stop()
            throw error
        }
        await channel.shutdown()
        await sink.stop()
    }

    private func isDelivered(_ outcome: DeliveryOutcome) -> Bool {
        if case .delivered = outcome { true } else { false }
    }

    private func isFailed(_ outcome: DeliveryOutcome) -> Bool {
        if case .failed(let response, nil) = outcome { response.status == nil && response.error != nil } else { false }
    }

    @Test func aPushHasItsHeadersAndASignedToken() async throws {
        try await with { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            let identifier = APNsRequest.identifier(of: "ntf_1-0")
            let expected = DeliveryOutcome.delivered(DeliveryResponse(status: 200, providerID: identifier))
            #expect(await channel.deliver(delivery()) == expected)
            let received = try #require(sink.received.first)
            #expect(received.path == "/3/device/\(String(repeating: "0a", count: 32))")
            #expect(received.headers[":method"] == "POST" && received.headers[":scheme"] == "https")
            #expect(received.headers["apns-topic"] == "com.example.chat" && received.headers["apns-id"] == identifier)
            #expect(received.headers["authorization"]?.hasPrefix("bearer ") == true)
            #expect(key.read(received.token)?.claims["iat"]?.integer == Self.now / 1_000)
            let payload = try JSONParser.parse(received.body)
            #expect(payload["aps"]?["alert"]?["body"] == "ただいま 🍶")
        }
    }

    /// Apple allows one stream until it has seen a valid token.
    @Test func thereIsOneRequestUntilTheTokenIsProven() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in gate {} }
        let (others, release) = AsyncStream.makeStream(of: Void.self)
        let released = Task { for await _ in others {} }
        try await with { _, number in
            await (number == 1 ? opened : released).value
            return .response(200)
        } _: { channel, sink, _ in
            let first = delivery("first")
            async let one = channel.deliver(first)
            try await eventually("the first has come") { sink.inFlight == 1 }
            let other = delivery()
            async let outcomes = withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<20 { group.addTask { await channel.deliver(other) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            // Another topic has a connection of its own: meanwhile the twenty would have come, too.
            for _ in 0..<20 { await Task.yield() }
            #expect(sink.received.count == 1)
            open.finish()
            try await eventually("all others have come") { sink.inFlight == 20 }
            release.finish()
            #expect(await outcomes.allSatisfy(isDelivered))
            #expect(await isDelivered(one))
            #expect(sink.connections == 1 && sink.mostInFlight == 20)
            #expect(Set(sink.received.map(\.token)).count == 1)
        }
    }

    @Test func whatProvesNoTokenLetsTheNextTry() async throws {
        try await with { _, number in
            number <= 3 ? .response(503, reason: "ServiceUnavailable") : .response(200)
        } _: { channel, sink, _ in
            let delivery = delivery()
            let delivered = await withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<10 { group.addTask { await channel.deliver(delivery) } }
                return await group.reduce(into: 0) { count, outcome in count += isDelivered(outcome) ? 1 : 0 }
            }
            #expect(delivered == 7 && sink.received.count == 10)
        }
    }

    @Test func theStreamsOfSettingsAreKept() async throws {
        try await with(streamsMax: 1) { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            let delivery = delivery()
            let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<20 { group.addTask { await channel.deliver(delivery) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.count == 20 && outcomes.allSatisfy(isDelivered))
            #expect(sink.mostInFlight == 1 && sink.connections == 1)
        }
    }

    @Test func laterSettingsAllowMore() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in gate {} }
        try await with(streamsMax: 1) { _, number in
            if number == 1 { return .settings(100, status: 200) }
            await opened.value
            return .response(200)
        } _: { channel, sink, _ in
            let delivery = delivery()
            #expect(await isDelivered(channel.deliver(delivery)))
            async let outcomes = withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<20 { group.addTask { await channel.deliver(delivery) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            try await eventually("all are there") { sink.inFlight == 20 }
            open.finish()
            #expect(await outcomes.allSatisfy(isDelivered))
            #expect(sink.connections == 1)
        }
    }

    @Test func settingsOfNoStreamsHoldNoPushForEver() async throws {
        try await with(limits { $0.timeout = .milliseconds(300) }, streamsMax: 0) { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            #expect(await isFailed(channel.deliver(delivery())))
            #expect(sink.received.isEmpty)
        }
    }

    // MARK: The provider token

    @Test func anExpiredProviderTokenIsReplacedAtOnce() async throws {
        try await with { _, number in
            number == 1 ? .response(403, reason: "ExpiredProviderToken") : .response(200)
        } _: { channel, sink, _ in
            #expect(await isDelivered(channel.deliver(delivery())))
            #expect(await isDelivered(channel.deliver(delivery())))
            let tokens = sink.received.map(\.token)
            #expect(tokens.count == 3 && tokens[0] != tokens[1] && tokens[1] == tokens[2])
            #expect(sink.received[0].headers["apns-id"] == sink.received[1].headers["apns-id"])
        }
    }

    @Test func providerTokensThatAreAllExpiredHoldTheApp() async throws {
        try await with { _, _ in
            .response(403, reason: "ExpiredProviderToken")
        } _: { channel, sink, _ in
            let response = DeliveryResponse(
                status: 403, error: "APNs finds the provider token too old: ExpiredProviderToken",
                reason: "ExpiredProviderToken")
            #expect(await channel.deliver(delivery()) == .providerRefused(response, retryAfter: nil))
            #expect(sink.received.count == 2)
            // A third token within 20 minutes would be one too many.
            #expect(await channel.deliver(delivery()) == .providerRefused(response, retryAfter: nil))
            #expect(sink.received.count == 3 && Set(sink.received.map(\.token)).count == 2)
        }
    }

    // MARK: Connections

    @Test func aSilentConnectionIsReplacedAfterTwoDeadlines() async throws {
        try await with(limits { $0.timeout = .seconds(1) }) { request, _ in
            request.connection == 1 ? .silence : .response(200)
        } _: { channel, sink, _ in
            #expect(await isFailed(channel.deliver(delivery())))
            #expect(await isFailed(channel.deliver(delivery())))
            var outcome = await channel.deliver(delivery())
            // A slow machine can miss the deadline, too.
            for _ in 0..<20 where !isDelivered(outcome) { outcome = await channel.deliver(delivery()) }
            #expect(isDelivered(outcome) && sink.connections >= 2)
            #expect(Set(sink.received.map { $0.headers["apns-id"] }).count == 1)
            #expect(Set(sink.received.map { $0.headers["apns-collapse-id"] }) == ["ntf_1"])
            try await eventually("the silent one is closed") { sink.open == 1 }
        }
    }

    /// Those that wait behind it were not sent: the attempt does not count.
    @Test func aSilentFirstRequestPostponesTheOthers() async throws {
        let limits = limits { $0.turnTimeout = .milliseconds(200) }
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in gate {} }
        try await with(limits) { _, _ in
            await opened.value
            return .response(200)
        } _: { channel, sink, _ in
            let delivery = delivery()
            async let first = channel.deliver(delivery)
            try await eventually("the first has come") { sink.inFlight == 1 }
            guard case .postponed(let response) = await channel.deliver(delivery) else {
                Issue.record("it was sent")
                return
            }
            #expect(response.status == nil && response.error != nil && sink.received.count == 1)
            open.finish()
            #expect(await isDelivered(first))
            #expect(await isDelivered(channel.deliver(delivery)))
        }
    }

    @Test func goAwayFailsWhatWasNotDoneAndTheNextHasAnotherConnection() async throws {
        try await with { request, number in
            request.connection == 1 && number > 2 ? .goAway : .response(200)
        } _: { channel, sink, _ in
            for _ in 0..<2 { #expect(await isDelivered(channel.deliver(delivery()))) }
            #expect(await isFailed(channel.deliver(delivery())))
            #expect(await isDelivered(channel.deliver(delivery())))
            #expect(sink.connections == 2 && Set(sink.received.map { $0.headers["apns-id"] }).count == 1)
            try await eventually("the first one is closed") { sink.open == 1 }
        }
    }

    @Test func shutdownTakesAnotherConnection() async throws {
        try await with { _, number in
            number == 1 ? .response(503, reason: "Shutdown", headers: ["retry-after": "7"]) : .response(200)
        } _: { channel, sink, _ in
            let response = DeliveryResponse(status: 503, error: "APNs failed: Shutdown", reason: "Shutdown")
            #expect(await channel.deliver(delivery()) == .failed(response, retryAfter: .seconds(7)))
            #expect(await isDelivered(channel.deliver(delivery())))
            #expect(sink.received.map(\.connection) == [1, 2])
        }
    }

    @Test func aResetStreamIsAFailureOfItsPushAlone() async throws {
        try await with { _, number in
            number == 2 ? .reset : .response(200)
        } _: { channel, sink, _ in
            #expect(await isDelivered(channel.deliver(delivery())))
            #expect(await isFailed(channel.deliver(delivery())))
            #expect(await isDelivered(channel.deliver(delivery())))
            #expect(sink.connections == 1)
        }
    }

    @Test(arguments: [200, 500])
    func ofABodyWithoutEndOnlyTheBeginningIsRead(_ status: Int) async throws {
        try await with { _, _ in
            .endless(status)
        } _: { channel, sink, _ in
            switch await channel.deliver(delivery()) {
            case .delivered(let response): #expect(status == 200 && response == DeliveryResponse(status: 200))
            case .failed(let response, nil): #expect(status == 500 && response.error == "APNs failed")
            case let outcome: Issue.record("\(outcome)")
            }
            try await eventually("its stream is closed") { sink.inFlight == 0 }
        }
    }

    @Test func theCertificateOfAnotherIsRefused() async throws {
        try await with { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            let others = try TestCertificates()
            channel.replace(["default": try key.credentials(port: sink.port, trusting: others)])
            #expect(await isFailed(channel.deliver(delivery())))
            channel.replace(["default": try key.credentials(port: sink.port)])
            #expect(await isFailed(channel.deliver(delivery())))
            #expect(sink.received.isEmpty)
        }
    }

    @Test func halfATLSRecordIsAFailure() async throws {
        let receiver = try RawReceiver(sends: "\u{16}\u{3}\u{3}\u{0}\u{40}\u{2}")
        let channel = APNsChannel(
            limits: limits { $0.connectTimeout = .milliseconds(300) }, version: "0.1.0", now: { Self.now })
        channel.replace(["default": try key.credentials(port: receiver.port)])
        #expect(await isFailed(channel.deliver(delivery())))
        await channel.shutdown()
    }

    @Test func aCancelledAttemptEndsItsStream() async throws {
        try await with { _, _ in
            .silence
        } _: { channel, sink, _ in
            let delivery = delivery()
            let attempt = Task { await channel.deliver(delivery) }
            try await eventually("it has come") { sink.inFlight == 1 }
            // One that waits for its turn ends, too.
            let waiting = Task { await channel.deliver(delivery) }
            waiting.cancel()
            guard case .postponed = await waiting.value else {
                Issue.record("it was sent")
                return
            }
            attempt.cancel()
            #expect(await isFailed(attempt.value))
            try await eventually("its stream is closed") { sink.inFlight == 0 }
        }
    }

    @Test func eachTopicAndKeyHasAConnection() async throws {
        try await with { _, _ in
            .response(200)
        } _: { channel, sink, certificates in
            let first = try key.credentials(port: sink.port, trusting: certificates)
            let other = try key.credentials(topic: "com.example.other", port: sink.port, trusting: certificates)
            channel.replace(["default": first, "same": first, "other": other])
            for app in ["default", "same", "other", "default"] {
                #expect(await isDelivered(channel.deliver(delivery(app: app))))
            }
            #expect(sink.received.map(\.connection) == [1, 1, 2, 1])
            let topics = ["com.example.chat", "com.example.chat", "com.example.other", "com.example.chat"]
            #expect(sink.received.map { $0.headers["apns-topic"] } == topics)
            #expect(Set(sink.received.map(\.token)).count == 1)
            // Another key: the connections of the old one go.
            let new = APNsTestKey()
            channel.replace(["default": try new.credentials(port: sink.port, trusting: certificates)])
            #expect(await isDelivered(channel.deliver(delivery())))
            let last = try #require(sink.received.last)
            #expect(last.connection == 3 && new.read(last.token) != nil)
            try await eventually("the others are closed") { sink.open == 1 }
        }
    }

    // MARK: Apps

    @Test func withoutCredentialsAnAppWaits() async throws {
        try await with { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            let error = "the app \"other\" has no APNs credentials"
            #expect(
                await channel.deliver(delivery(app: "other"))
                    == .providerRefused(DeliveryResponse(error: error), retryAfter: nil))
            var webhook = delivery()
            webhook.address = .webhook(url: "https://example.com/", secrets: [])
            var long = delivery()
            long.content.data = ["x": String(repeating: "x", count: 4_096)]
            for delivery in [webhook, long] {
                guard case .rejected(let response) = await channel.deliver(delivery) else {
                    Issue.record("it was sent")
                    continue
                }
                #expect(response.status == nil && response.error != nil)
            }
            #expect(sink.received.isEmpty)
        }
    }

    @Test func goodCredentialsHaveNoProblem() async throws {
        try await with { request, _ in
            request.path == "/3/device/\(String(repeating: "0", count: 64))"
                ? .response(400, reason: "BadDeviceToken") : .response(500)
        } _: { channel, sink, _ in
            #expect(await channel.problem(of: "default") == nil)
            #expect(await channel.check(app: "default", environment: .sandbox) == nil)
            #expect(sink.received.map { $0.headers["apns-expiration"] } == ["0", "0"])
        }
    }

    @Test(arguments: [(403, "InvalidProviderToken"), (400, "TopicDisallowed"), (503, "ServiceUnavailable")])
    func whatIsWrongWithCredentialsIsASentence(_ status: Int, _ reason: String) async throws {
        try await with { _, _ in
            .response(status, reason: reason)
        } _: { channel, _, _ in
            let problem = try #require(await channel.problem(of: "default"))
            let words = "with the key ABC123DEFG of the team DEF123GHIJ for com.example.chat, cannot be used: "
            #expect(problem.hasPrefix("APNs (production), \(words)"))
            #expect(problem.hasSuffix("\(reason) (HTTP status \(status))"))
            let none = try #require(await channel.problem(of: "other"))
            #expect(none.hasSuffix("the app \"other\" has no APNs credentials"))
        }
    }

    @Test func afterShutdownNothingIsSent() async throws {
        try await with { _, _ in
            .response(200)
        } _: { channel, sink, _ in
            #expect(await isDelivered(channel.deliver(delivery())))
            await channel.shutdown()
            guard case .postponed = await channel.deliver(delivery()) else {
                Issue.record("it was sent")
                return
            }
            #expect(sink.received.count == 1)
        }
    }
}
