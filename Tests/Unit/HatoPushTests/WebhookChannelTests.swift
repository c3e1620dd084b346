import HatoFetch
import HatoModel
import HatoRuntime
import HatoTesting
import Synchronization
import Testing

@testable import HatoPush

/// Every name is this machine.
private struct LoopbackResolver: HostResolver {
    func addresses(of host: String, for caller: LookUpCaller) async throws(AddressRefusal) -> [IPAddress] {
        [.v4(0x7F00_0001)]
    }
}

/// Counts up and down.
private final class Counter: Sendable {
    private let state = Mutex((now: 0, most: 0))

    func add(_ count: Int) {
        state.withLock { state in
            state.now += count
            state.most = max(state.most, state.now)
        }
    }

    var most: Int { state.withLock { $0.most } }
}

@Suite(.timeLimit(.minutes(10))) struct WebhookChannelTests {
    private static let now: Int64 = 1_795_000_000_500
    private let secret = WebhookSecret { 0x1234_5678_9ABC_DEF0 }

    private func channel(
        allowsPrivate: Bool = true, timeout: Duration = .seconds(240), bodyTimeout: Duration = .seconds(240),
        connectionsMax: Int? = nil
    ) -> WebhookChannel {
        var limits = WebhookChannel.Limits()
        if let connectionsMax { limits.connectionsPerHostMax = connectionsMax }
        limits.timeout = timeout
        limits.bodyTimeout = bodyTimeout
        limits.connectTimeout = .seconds(240)
        return WebhookChannel(
            AddressGuard(.init(allowsPrivate: allowsPrivate), resolver: LoopbackResolver()), limits: limits,
            version: "0.1.0", now: { Self.now })
    }

    private func delivery(to url: String) -> Delivery {
        var content = DeliveryContent(
            notification: "ntf_1", device: "dev_1", uid: "u2", text: .init(title: "マスオさんからのメッセージ", body: "ただいま 🍶"))
        content.data = ["chat": "c1"]
        return Delivery(
            id: "ntf_1-0", address: .webhook(url: url, secrets: [secret]), content: content,
            createdAt: 1_795_000_000_000)
    }

    private func with(
        _ channel: WebhookChannel, answer: @escaping @Sendable (Int) async -> HTTPResponse,
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

    /// An attempt that has begun waits for its receiver, never for the connections of others to the same one.
    @Test func attemptsAtOneReceiverGoSideBySide() async throws {
        let count = WebhookChannel.Limits().connectionsPerHostMax
        let (all, came) = AsyncStream.makeStream(of: Void.self)
        let everyone = Task { for await _ in all {} }
        let channel = channel()
        let answer = { @Sendable (received: Int) async -> HTTPResponse in
            if received == count { came.finish() }
            await everyone.value
            return HTTPResponse(status: 204)
        }
        try await with(channel, answer: answer) { receiver in
            let delivery = delivery(to: "http://receiver.test:\(receiver.port)/hook")
            let outcomes = await withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<count { group.addTask { await channel.deliver(delivery) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes == Array(repeating: .delivered(DeliveryResponse(status: 204)), count: count))
        }
    }

    /// However many attempts there are at one receiver, it has no more connections than it may.
    @Test func attemptsBeyondTheConnectionsOfAReceiverWait() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in gate {} }
        let channel = channel(connectionsMax: 2)
        let others = self.channel()
        let inFlight = Counter()
        let answer = { @Sendable (_: Int) async -> HTTPResponse in
            inFlight.add(1)
            await opened.value
            inFlight.add(-1)
            return HTTPResponse(status: 204)
        }
        try await with(channel, answer: answer) { receiver in
            let free = try await Receiver { _ in HTTPResponse(status: 204) }
            let delivery = delivery(to: "http://receiver.test:\(receiver.port)/hook")
            let probe = self.delivery(to: "http://receiver.test:\(free.port)/hook")
            async let outcomes = withTaskGroup(of: DeliveryOutcome.self) { group in
                for _ in 0..<12 { group.addTask { await channel.deliver(delivery) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            try await eventually("two have come") { inFlight.most >= 2 }
            // Meanwhile others would have come, too.
            for _ in 0..<50 { _ = await others.deliver(probe) }
            open.finish()
            let count = await outcomes.count
            #expect(count == 12 && inFlight.most == 2)
            await free.stop()
        }
        await others.shutdown()
    }

    @Test func whatIsReceivedIsSignedAsItStands() async throws {
        let channel = channel()
        try await with(channel, answer: { _ in HTTPResponse(status: 204) }) { receiver in
            let url = "http://receiver.test:\(receiver.port)/hook?x=1"
            #expect(await channel.deliver(delivery(to: url)) == .delivered(DeliveryResponse(status: 204)))
            let received = try #require(receiver.received.first)
            #expect(received.headers.id == "ntf_1-0")
            #expect(received.headers.timestamp == "1795000000")
            #expect(received.host == "receiver.test:\(receiver.port)")
            #expect(received.target == "/hook?x=1")
            try WebhookSignature.verify(
                received.headers, body: received.body, secrets: [secret], now: Self.now / 1_000)
            #expect(try JSONParser.parse(received.body)["data"]?["title"] == "マスオさんからのメッセージ")
        }
    }

    @Test func twoAttemptsBearTheSameIdentifierAndBody() async throws {
        let channel = channel()
        try await with(channel, answer: { HTTPResponse(status: $0 == 1 ? 500 : 200) }) { receiver in
            let delivery = delivery(to: "http://127.0.0.1:\(receiver.port)/")
            guard case .failed(let answer, nil) = await channel.deliver(delivery) else {
                Issue.record("500 is no failure")
                return
            }
            #expect(answer.status == 500)
            #expect(await channel.deliver(delivery) == .delivered(DeliveryResponse(status: 200)))
            #expect(receiver.received.count == 2)
            #expect(Set(receiver.received.map(\.headers.id)) == ["ntf_1-0"])
            #expect(Set(receiver.received.map(\.body)).count == 1)
        }
    }

    @Test func redirectsAreNotFollowed() async throws {
        let channel = channel()
        let other = try await Receiver { _ in HTTPResponse(status: 200) }
        let location = "http://127.0.0.1:\(other.port)/"
        try await with(
            channel, answer: { _ in HTTPResponse(status: 307, headers: [("location", location)]) }
        ) { receiver in
            let outcome = await channel.deliver(delivery(to: "http://127.0.0.1:\(receiver.port)/"))
            guard case .failed(let answer, nil) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(answer.status == 307)
        }
        #expect(other.received.isEmpty)
        await other.stop()
    }

    @Test func aReceiverThatIsGoneAndABusyOneSaySo() async throws {
        let channel = channel()
        try await with(
            channel,
            answer: { $0 == 1 ? HTTPResponse(status: 410) : HTTPResponse(status: 503, headers: [("retry-after", "7")]) }
        ) { receiver in
            let delivery = delivery(to: "http://127.0.0.1:\(receiver.port)/")
            guard case .deviceGone = await channel.deliver(delivery) else {
                Issue.record("410 is not gone")
                return
            }
            guard case .failed(_, retryAfter: .seconds(7)) = await channel.deliver(delivery) else {
                Issue.record("Retry-After is not honoured")
                return
            }
        }
    }

    @Test func onlyTheBeginningOfALongResponseIsRead() async throws {
        let channel = channel()
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: 8 << 20)
        try await with(channel, answer: { HTTPResponse(status: $0 == 1 ? 400 : 200, body: long) }) { receiver in
            let delivery = delivery(to: "http://127.0.0.1:\(receiver.port)/")
            guard case .failed(let answer, _) = await channel.deliver(delivery) else {
                Issue.record("400 is no failure")
                return
            }
            #expect((answer.error ?? "").utf8.count < 300)
            guard case .delivered = await channel.deliver(delivery) else {
                Issue.record("a long answer spoils the delivery")
                return
            }
        }
    }

    /// The time limit of the call is four minutes.
    @Test(arguments: ["content-length: 1000", "transfer-encoding: chunked"])
    func aBodyThatNeverEndsIsNotWaitedFor(_ header: String) async throws {
        let channel = channel(bodyTimeout: .milliseconds(50))
        for status in [200, 500] {
            let receiver = try RawReceiver(sends: "HTTP/1.1 \(status) Status\r\n\(header)\r\n\r\n3\r\nabc")
            let outcome = await channel.deliver(delivery(to: "http://127.0.0.1:\(receiver.port)/"))
            switch outcome {
            case .delivered(let answer): #expect(status == 200 && answer.status == 200)
            case .failed(let answer, nil): #expect(status == 500 && answer.error?.hasSuffix("abc") == true)
            default: Issue.record("\(outcome)")
            }
            try await eventually("its connection is closed") { receiver.isClosed }
        }
        await channel.shutdown()
    }

    @Test func aSilentReceiverIsAFailureAtTheTimeLimit() async throws {
        let channel = channel(timeout: .milliseconds(200))
        let (silence, end) = AsyncStream.makeStream(of: Void.self)
        try await with(
            channel,
            answer: { _ in
                for await _ in silence {}
                return HTTPResponse(status: 200)
            }
        ) { receiver in
            let outcome = await channel.deliver(delivery(to: "http://127.0.0.1:\(receiver.port)/"))
            end.finish()
            guard case .failed(let answer, nil) = outcome else {
                Issue.record("silence is no failure")
                return
            }
            #expect(answer.status == nil && answer.error != nil)
        }
    }

    @Test func closedPortIsAFailure() async throws {
        let channel = channel()
        let receiver = try await Receiver { _ in HTTPResponse(status: 200) }
        let url = "http://127.0.0.1:\(receiver.port)/"
        await receiver.stop()
        guard case .failed(let answer, nil) = await channel.deliver(delivery(to: url)) else {
            Issue.record("nobody is no failure")
            return
        }
        #expect(answer.status == nil)
        await channel.shutdown()
    }

    @Test func addressIsCheckedAgainBeforeEachSend() async throws {
        let channel = channel(allowsPrivate: false)
        let outcome = await channel.deliver(delivery(to: "https://inside.example/"))
        guard case .failed(let answer, nil) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(answer.error?.contains("not on the public internet") == true)
        await #expect(throws: AddressRefusal.privateAddress(host: "inside.example")) {
            _ = try await channel.check(.webhook(url: "https://inside.example/", secrets: []), for: "u")
        }
        await channel.shutdown()
    }
}
