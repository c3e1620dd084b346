import HatoModel
import HatoPush
import HatoRPC
import HatoStorage
import HatoTesting
import Testing

@testable import HatoNotifier

/// What `service.health` and `notifier.apps.list` say of providers that refuse what is sent.
@Suite struct ProviderHealthTests {
    private static let keyRefused = DeliveryOutcome.failed(
        DeliveryResponse(status: 403, error: "the push service refuses the signature"), retryAfter: nil)

    private func health(_ notifier: TestNotifier) async throws -> (status: String?, providers: JSONObject?) {
        let health = try await notifier.client.call(method: "service.health")
        return (health["status"]?.string, health["checks"]?["providers"]?.object)
    }

    private func running(
        _ channel: ScriptedChannel, store: (any Store)? = nil, _ body: (TestNotifier) async throws -> Void
    ) async throws {
        let notifier = try await TestNotifier.start(store: store, channels: [channel])
        let result: Result<Void, any Error>
        do { result = .success(try await body(notifier)) } catch { result = .failure(error) }
        await notifier.stop()
        try result.get()
    }

    private func provider(
        _ platform: Notifier.Platform, _ notifier: TestNotifier
    ) async throws -> Notifier.AppProvider? {
        try await notifier.client.call(Notifier.Apps.List()).apps.first { $0.app == "default" }?.providers
            .first { $0.platform == platform }
    }

    @Test func healthNamesAPausedQueueAndWhy() async throws {
        let no = DeliveryOutcome.providerRefused(
            DeliveryResponse(status: 403, error: "the service account may not send"), retryAfter: nil)
        try await running(ScriptedChannel(.fcm, script: [no])) { notifier in
            #expect(try await health(notifier).providers == nil)
            _ = try await notifier.client.call(
                method: "notifier.devices.register", params: ["platform": "fcm", "uid": "u1", "token": "token-1"])
            _ = try await notifier.client.call(Notifier.Send(to: .init(uids: ["u1"]), notification: .init(title: "a")))
            try await eventually("health says so") {
                try await health(notifier).providers?["fcm default"] == "paused: the service account may not send"
            }
            #expect(try await health(notifier).status == "degraded")
            _ = try await notifier.client.call(Notifier.Apps.Resume(app: "default"))
            try await eventually("it is delivered") { try await notifier.stats.pending == 0 }
            #expect(try await health(notifier).providers == nil)
        }
    }

    @Test func healthNamesAStoppedQueueUntilItIsResumed() async throws {
        let store = try MemoryStore()
        let queue = try #require(ProviderQueue(.fcm, app: "default"))
        _ = try await store.write { transaction in
            var writes = RecordWrites()
            writes.put(StoppedQueueRecord.key(queue), StoppedQueueRecord(since: 1, problem: "the wrong project"))
            try writes.apply(to: transaction)
        }
        try await running(ScriptedChannel(.fcm), store: store) { notifier in
            let health = try await health(notifier)
            #expect(health.status == "degraded" && health.providers?["fcm default"] == "stopped: the wrong project")
            _ = try await notifier.client.call(Notifier.Apps.Resume(app: "default"))
            #expect(try await self.health(notifier).providers == nil)
        }
    }

    /// Firebase cannot reach Apple's devices, and reaches those on Android meanwhile.
    @Test func aProviderThatReachesSomeDevicesOnlyIsReadyWithAProblem() async throws {
        var response = DeliveryResponse(status: 401, error: "the APNs key is refused", reason: "THIRD_PARTY_AUTH_ERROR")
        response.isMisconfiguration = true
        let refused = DeliveryOutcome.failed(response, retryAfter: nil)
        try await running(ScriptedChannel(.fcm, script: Array(repeating: refused, count: 30))) { notifier in
            let users = (1...30).map { "u\($0)" }
            for user in users {
                _ = try await notifier.client.call(
                    method: "notifier.devices.register",
                    params: ["platform": "fcm", "uid": .string(user), "token": .string("token-\(user)")])
            }
            let before = try await health(notifier)
            _ = try await notifier.client.call(Notifier.Send(to: .init(uids: users), notification: .init(title: "a")))
            try await eventually("all are delivered at last") { try await notifier.stats.pending == 0 }
            let provider = try await provider(.fcm, notifier)
            #expect(provider?.status == .ready && provider?.since != nil)
            #expect(provider?.problem == "devices of 5 or more users are not reached: the APNs key is refused")
            let shown = try await health(notifier)
            #expect(shown.status == before.status)
            #expect(
                shown.providers?["fcm default"]
                    == "ready: devices of 5 or more users are not reached: the APNs key is refused")
            _ = try await notifier.client.call(Notifier.Apps.Resume(app: "default"))
            #expect(try await self.provider(.fcm, notifier)?.problem == nil)
        }
    }

    /// A wrong key or subject of Web Push.
    @Test func healthSaysThatPushServicesRefuseTheKey() async throws {
        let channel = ScriptedChannel(.webpush, script: Array(repeating: Self.keyRefused, count: 5))
        try await running(channel) { notifier in
            for user in 1...5 {
                _ = try await notifier.client.call(
                    method: "notifier.devices.register",
                    params: [
                        "platform": "webpush", "uid": .string("u\(user)"),
                        "subscription": TestSubscription.json(at: "https://push.example.com/\(user)"),
                    ])
            }
            #expect(try await provider(.webpush, notifier)?.status == .unchecked)
            // The key cannot be tried without a subscription.
            let checked = try await notifier.client.call(Notifier.Apps.Check()).apps.first?.providers.first
            #expect(checked?.status == .unchecked)
            let send = Notifier.Send(to: .init(uids: (1...5).map { "u\($0)" }), notification: .init(title: "a"))
            _ = try await notifier.client.call(send)
            try await eventually("all are delivered at last") { try await notifier.stats.pending == 0 }
            #expect(try await provider(.webpush, notifier)?.status == .ready)
            let before = try await health(notifier)
            #expect(before.providers == nil)
            channel.respondNext(Array(repeating: Self.keyRefused, count: 1_000))
            _ = try await notifier.client.call(send)
            try await eventually("it is known") { try await provider(.webpush, notifier)?.problem != nil }
            let shown = try await health(notifier)
            // Anyone can have a server that refuses pushes.
            #expect(shown.status == before.status)
            #expect(
                shown.providers?["webpush default"]
                    == "ready: the push service push.example.com:443 responds with 403: check the key and the subject")
        }
    }
}

/// What refusals of push services of browsers mean.
@Suite struct SignatureRefusalTests {
    private let refused = DeliveryOutcome.failed(DeliveryResponse(status: 401, error: "no"), retryAfter: nil)
    private let delivered = DeliveryOutcome.delivered(DeliveryResponse(status: 201))

    private func lease(of uid: String, at host: String) throws -> Lease {
        let subscription = try TestSubscription.at("https://\(host)/1")
        let content = DeliveryContent(
            notification: "n", device: "d", uid: uid, text: Notifier.NotificationText(title: "a"))
        return Lease(
            key: RecordKey(.delivery), attempt: 1, platform: .webpush, group: AttemptGroup(host: host, uid: uid),
            hasSucceeded: true, began: 0,
            delivery: Delivery(id: "n-0", address: .webpush(subscription), content: content, createdAt: 0))
    }

    @Test func oneServiceThatRefusesAllIsAProblemOfAnAppThatIsReady() throws {
        var refusals = SignatureRefusals()
        for user in 1...5 {
            #expect(refusals.status.problem == nil)
            refusals.attemptEnded(refused, of: try lease(of: "u\(user)", at: "a.example"), at: Int64(user))
            refusals.attemptEnded(delivered, of: try lease(of: "u\(user)", at: "b.example"), at: Int64(user))
        }
        #expect(refusals.status.status == .ready)
        #expect(refusals.status.problem?.contains("a.example:443 responds with 401") == true)
        #expect(refusals.status.since == 1)
        refusals.attemptEnded(delivered, of: try lease(of: "u9", at: "a.example"), at: 9)
        #expect(refusals.status.problem == nil)
    }

    @Test func oneUserIsNoSignHoweverManyDevicesItHas() throws {
        var refusals = SignatureRefusals()
        for number in 0..<200 {
            refusals.attemptEnded(refused, of: try lease(of: "u", at: "\(number).example"), at: 1)
        }
        #expect(refusals.status.status == .unchecked && refusals.status.problem == nil)
        for user in 0..<4 { refusals.attemptEnded(refused, of: try lease(of: "u\(user)", at: "c.example"), at: 2) }
        #expect(refusals.status.status == .unchecked)
        #expect(refusals.status.problem?.hasPrefix("one of several push services responds with 401") == true)
    }

    /// Only a service that says that it is gone ends it, or one that fails for five days by itself.
    @Test func aSubscriptionThatWorkedGoesForNoMistakeOfOurs() {
        func verdict(_ outcome: DeliveryOutcome, hasSucceeded: Bool, _ platform: Notifier.Platform = .webpush)
            -> DeviceVerdict
        {
            var device = DeviceRecord(device: "d", uid: "u", platform: platform, createdAt: 0)
            device.hasSucceeded = hasSucceeded
            let verdicts = [0, 6 * 86_400_000].map { now in
                device.attemptEnded(
                    outcome, .init(now: now, began: now, environment: nil, isStopped: false), DeliveryPolicy())
            }
            return verdicts[1]
        }
        for status in [400, 401, 403, nil] {
            let failed = DeliveryOutcome.failed(DeliveryResponse(status: status, error: "no"), retryAfter: nil)
            #expect(verdict(failed, hasSucceeded: true) == .stays, "\(status ?? 0)")
            #expect(verdict(failed, hasSucceeded: false) == .ends(.failing), "\(status ?? 0)")
            #expect(verdict(failed, hasSucceeded: true, .webhook) == .ends(.failing), "\(status ?? 0)")
        }
        let tooLarge = DeliveryOutcome.rejected(DeliveryResponse(status: 413, error: "too large"))
        #expect(verdict(tooLarge, hasSucceeded: true) == .stays)
        let failing = DeliveryOutcome.failed(DeliveryResponse(status: 500), retryAfter: nil)
        #expect(verdict(failing, hasSucceeded: true) == .ends(.failing))
        #expect(verdict(.deviceGone(DeliveryResponse(status: 410), since: nil), hasSucceeded: true) == .ends(.gone))
    }
}

/// The figures of providers and queues.
@Suite struct ProviderMetricsTests {
    @Test func reasonsAreFewWhateverAReceiverResponds() {
        func reason(_ status: Int?, _ word: String? = nil) -> String? {
            ProviderMetrics.reason(.failed(DeliveryResponse(status: status, reason: word), retryAfter: nil))
        }
        #expect(reason(400, "BadDeviceToken") == "BadDeviceToken" && reason(404, "UNREGISTERED") == "UNREGISTERED")
        #expect(reason(404, "SomethingElse") == "404" && reason(503) == "503")
        #expect(reason(299) == "other" && reason(418) == "other" && reason(nil) == "no_response")
        #expect(ProviderMetrics.reason(.delivered(DeliveryResponse(status: 200))) == nil)
        #expect(ProviderMetrics.reason(.postponed(DeliveryResponse(error: "later"))) == nil)
        #expect(ProviderMetrics.reason(.deviceGone(DeliveryResponse(status: 410), since: nil)) == "410")
        #expect(Set((-1...70_000).compactMap { reason($0) }).count < 40)
    }

    @Test func theOldestDeliveryIsFoundInEveryTable() async throws {
        let clock = TestClock()
        let outbox = try await Outbox.test(MemoryStore(), clock)
        func ages() async throws -> [Double] {
            let waiting = try await outbox.store.read { try OldestWaiting(in: $0) }
            return [waiting.acceptedAt, waiting.dueAt].map { OldestWaiting.age($0, at: clock.now) }
        }
        #expect(try await ages() == [0, 0])
        try await outbox.addDevice("d1", of: "u1")
        try await outbox.addPhone("p1", of: "u2")
        try await outbox.send("a", to: ["u1"])
        clock.advance(by: .seconds(10))
        try await outbox.send("b", to: ["u2"])
        clock.advance(by: .seconds(5))
        #expect(try await ages() == [15, 15])
        let lease = try #require(try await outbox.lease(limit: 1).leases.first)
        // It is under way: the phone's is due.
        #expect(try await ages() == [15, 5])
        try await outbox.record(.delivered(DeliveryResponse(status: 200)), of: lease)
        #expect(try await ages() == [5, 5])
        let queue = try #require(ProviderQueue(.apns, app: "default"))
        let next = try #require(try await ProviderQueues(outbox).lease(from: queue, limit: 1).leases.first)
        try await outbox.record(ScriptedChannel.busy, of: next)
        clock.advance(by: .milliseconds(100))
        // It waits for its next attempt.
        #expect(try await ages() == [5.1, 0])
    }
}
